#include "codegen/passes/decompose.hpp"

#include <range/v3/algorithm/any_of.hpp>

#include "codegen/error.hpp"
#include "codegen/passes/normalised.hpp"
#include "codegen/passes/op.hpp"
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

NodeId log_softmax(Builder& b, NodeId x, const std::vector<int>& axes) {
  const NodeId shifted = b.subtract(x, spread_reduce(b, Op::reduce_max, x, axes));
  return b.subtract(shifted, b.unary(Op::log, spread_reduce(b, Op::reduce_sum, b.unary(Op::exp, shifted), axes)));
}

/// Rows of a table as a product with ones and zeros: for tables of thousands of rows, not of millions.
NodeId gather(Builder& b, NodeId table, NodeId rows) {
  const NodeId chosen = b.one_hot(rows, b.shape(table)[0]);
  std::vector<int> left, right, result;
  for (std::size_t i = 0; i < b.shape(chosen).size(); ++i) left.push_back(static_cast<int>(i));
  result.assign(left.begin(), left.end() - 1);
  right.push_back(left.back());
  for (std::size_t i = 1; i < b.shape(table).size(); ++i) {
    right.push_back(left.back() + static_cast<int>(i));
    result.push_back(right.back());
  }
  return b.einsum({chosen, table}, {left, right, result});
}

NodeId dropout(Builder& b, const Node& n, NodeId random) {
  const NodeId factors = b.keep(random, n);
  return b.multiply(n.operands[0], b.broadcast(factors, n.shape, n.axes));
}

NodeId layer_norm(Builder& b, const Node& n) {
  const NodeId value = normalised(b, n.operands[0], n.axes, n.value).value;
  const NodeId weight = b.broadcast(n.operands[1], n.shape, n.axes);
  const NodeId bias = b.broadcast(n.operands[2], n.shape, n.axes);
  return b.add(b.multiply(value, weight), bias);
}

NodeId cross_entropy(Builder& b, NodeId logits, NodeId labels) {
  const std::vector<Dim> shape = b.shape(logits);
  const std::vector<int> row{static_cast<int>(shape.size()) - 1}, rows = other_axes(shape.size(), row);
  const NodeId largest = b.reduce(Op::reduce_max, logits, row);
  const NodeId weights = b.unary(Op::exp, b.subtract(logits, b.broadcast(largest, shape, rows)));
  const NodeId log_sum = b.add(b.unary(Op::log, b.reduce(Op::reduce_sum, weights, row)), largest);
  const NodeId chosen = b.reduce(Op::reduce_sum, b.multiply(b.one_hot(labels, shape.back()), logits), row);
  const NodeId sum = b.reduce(Op::reduce_sum, b.subtract(log_sum, chosen), rows);
  return b.divide(sum, rows_of(b, shape));
}

/// Called with a graph's first node, which is of the top level: the input that the factors of dropouts are made from.
NodeId random_state(Builder& b) { return b.input("random", {Dim::constant(4)}, graph::Type::integer); }

}  // namespace

Graph decompose(const Graph& graph) {
  const bool drops = ranges::any_of(graph.nodes, [](const Node& n) { return n.op == Op::dropout; });
  NodeId random = graph::none;
  return rewrite(graph, [&](Builder& b, const Node& n, NodeId old) {
    if (old == 0 && drops) random = random_state(b);
    switch (n.op) {
      case Op::softmax:
        return softmax(b, n.operands[0], n.axes);
      case Op::log_softmax:
        return log_softmax(b, n.operands[0], n.axes);
      case Op::layer_norm:
        return layer_norm(b, n);
      case Op::cross_entropy:
        return cross_entropy(b, n.operands[0], n.operands[1]);
      case Op::gather:
        return gather(b, n.operands[0], n.operands[1]);
      case Op::stop_gradient:
        return n.operands[0];
      case Op::dropout:
        return dropout(b, n, random);
      case Op::gradient:
        throw Error("a gradient within a declaration is for its losses: nothing else can read it");
        TESSERA_ELEMENTWISE_OPS(TESSERA_OP_CASE)
        TESSERA_MOVING_OPS(TESSERA_OP_CASE)
        TESSERA_CONTRACTION_OPS(TESSERA_OP_CASE)
        TESSERA_REDUCTION_OPS(TESSERA_OP_CASE)
        break;
    }
    return b.append(n);
  });
}

Graph without_dropout(const Graph& graph) {
  return rewrite(graph,
                 [](Builder& b, const Node& n, NodeId) { return n.op == Op::dropout ? n.operands[0] : b.append(n); });
}

}  // namespace tessera::codegen
