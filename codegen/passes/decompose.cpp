#include "codegen/passes/decompose.hpp"

#include "codegen/passes/normalised.hpp"
#include "codegen/passes/rewrite.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;

namespace {

NodeId softmax(Builder& b, NodeId x, const std::vector<int>& axes) {
  const NodeId weights = b.unary(Op::exp, b.subtract(x, spread_reduce(b, Op::reduce_max, x, axes)));
  return b.divide(weights, spread_reduce(b, Op::reduce_sum, weights, axes));
}

NodeId layer_norm(Builder& b, const Node& n) {
  const NodeId value = normalised(b, n.operands[0], n.axes, n.value).value;
  const NodeId weight = b.broadcast(n.operands[1], n.shape, n.axes);
  const NodeId bias = b.broadcast(n.operands[2], n.shape, n.axes);
  return b.add(b.multiply(value, weight), bias);
}

NodeId cross_entropy(Builder& b, NodeId logits, NodeId labels) {
  const std::vector<Dim> shape = b.shape(logits);
  const NodeId largest = b.reduce(Op::reduce_max, logits, {1});
  const NodeId weights = b.unary(Op::exp, b.subtract(logits, b.broadcast(largest, shape, {0})));
  const NodeId log_sum = b.add(b.unary(Op::log, b.reduce(Op::reduce_sum, weights, {1})), largest);
  const NodeId chosen = b.reduce(Op::reduce_sum, b.multiply(b.one_hot(labels, shape[1]), logits), {1});
  const NodeId sum = b.reduce(Op::reduce_sum, b.subtract(log_sum, chosen), {0});
  return b.divide(sum, extent_of(b, shape[0]));
}

}  // namespace

Graph decompose(const Graph& graph) {
  return rewrite(graph, [](Builder& b, const Node& n, NodeId) {
    switch (n.op) {
      case Op::softmax:
        return softmax(b, n.operands[0], n.axes);
      case Op::layer_norm:
        return layer_norm(b, n);
      case Op::cross_entropy:
        return cross_entropy(b, n.operands[0], n.operands[1]);
      default:
        return b.append(n);
    }
  });
}

}  // namespace tessera::codegen
