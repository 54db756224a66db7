#include "codegen/passes/decompose.hpp"

#include <algorithm>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find.hpp>

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

/// x with zeros before and behind it along an axis, which is `total` then; those of an unfold along another axis are
/// its operand's, so that windows need no memory.
NodeId padded(Builder& b, NodeId x, int axis, std::int64_t before, std::int64_t behind, const Dim& total) {
  if (before == 0 && behind == 0) return x;
  Node whole = b.graph()[x];
  std::vector<Dim> shape = whole.shape;
  if (whole.op == Op::unfold && axis != whole.axes[0] && axis != whole.axes[0] + 1) {
    whole.operands[0] = padded(b, whole.operands[0], axis - (axis > whole.axes[0] ? 1 : 0), before, behind, total);
    whole.shape[axis] = total;
    return b.append(std::move(whole));
  }
  const NodeId zero = b.constant(0);
  const auto zeros = [&](std::int64_t count) {
    shape[axis] = Dim::constant(count);
    return b.broadcast(zero, shape, {});
  };
  std::vector<NodeId> parts;
  if (before > 0) parts.push_back(zeros(before));
  parts.push_back(x);
  if (behind > 0) parts.push_back(zeros(behind));
  return b.concat(std::move(parts), axis, total);
}

/// Windows that reach over the ends of the axis reach into zeros. Those that are some way apart along the last axis are
/// copied: a GEMM's columns are neighbours in memory.
NodeId unfold(Builder& b, Node n) {
  const int axis = n.axes[0];
  const Dim whole = b.shape(n.operands[0])[axis];
  const std::int64_t across = (n.shape[axis].value() - 1) * n.dilation;
  const std::int64_t along = (n.shape[axis + 1].value() - 1) * n.stride;
  const std::int64_t first = n.offset + std::min<std::int64_t>(across, 0);
  const std::int64_t last = n.offset + along + std::max<std::int64_t>(across, 0);
  const std::int64_t before = std::max<std::int64_t>(-first, 0);
  const std::int64_t behind = std::max<std::int64_t>(last + 1 - whole.value(), 0);
  n.operands[0] = padded(b, n.operands[0], axis, before, behind, whole + Dim::constant(before + behind));
  n.offset += before;
  const bool apart = n.stride > 1 && axis + 2 == static_cast<int>(n.shape.size());
  const NodeId windows = b.append(std::move(n));
  return apart ? b.unary(Op::copy, windows) : windows;
}

/// The fold of an einsum of which one operand alone has the kernel's axis and the other one alone that of the windows:
/// an einsum with windows of that other one, the kernel reversed, as the gradient of a convolution's input is a
/// convolution. graph::none where it is not so.
NodeId folded_einsum(Builder& b, const Node& n) {
  const Node product = b.graph()[n.operands[0]];
  if (product.op != Op::einsum || product.operands.size() != 2 || n.stride != 1) return graph::none;
  const auto axis = at(n.axes[0]);
  const int kernel = product.letters[2][axis], window = product.letters[2][axis + 1];
  for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
    const auto has = [&](std::size_t operand, int letter) {
      return ranges::contains(product.letters[operand], letter);
    };
    if (!has(k, window) || has(k, kernel) || has(1 - k, window) || !has(1 - k, kernel)) continue;
    std::vector<std::vector<int>> letters = product.letters;
    const auto place = ranges::find(letters[k], window);
    const int along = static_cast<int>(place - letters[k].begin());
    letters[k].insert(place, kernel);
    letters[2].erase(letters[2].begin() + n.axes[0]);
    std::vector<NodeId> operands = product.operands;
    const NodeId plain = b.unfold(operands[k], along, product.shape[axis], n.shape[axis], -n.offset, 1, -n.dilation);
    operands[k] = unfold(b, b.graph()[plain]);
    return b.einsum(std::move(operands), std::move(letters));
  }
  return graph::none;
}

/// The numbers of the kernel one after the other: where their windows lie, the others being zeros, summed.
NodeId fold(Builder& b, const Node& n) {
  if (const NodeId product = folded_einsum(b, n); product != graph::none) return product;
  const int axis = n.axes[0];
  const std::vector<Dim> shape = b.shape(n.operands[0]);
  const std::int64_t length = n.shape[axis].value(), windows = shape[axis + 1].value();
  NodeId sum = graph::none;
  for (std::int64_t k = 0; k < shape[axis].value(); ++k) {
    // [..., 1, windows, ...] -> [..., windows, 1, ...], stride - 1 zeros behind each, -> [..., windows * stride, ...]
    const Dim one = Dim::constant(1), stride = Dim::constant(n.stride);
    graph::Rearrangement turned, merged;
    std::vector<Dim> apart, whole;
    for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
      turned.atoms.push_back(d == axis ? one : shape[d]);
      merged.atoms.push_back(d == axis ? stride : shape[d]);
      turned.from.push_back({d});
      turned.to.push_back({d == axis ? axis + 1 : d == axis + 1 ? axis : d});
      apart.push_back(d == axis ? shape[axis + 1] : d == axis + 1 ? one : shape[d]);
      if (d == axis) continue;
      merged.to.push_back(d == axis + 1 ? std::vector{axis + 1, axis} : std::vector{d});
      whole.push_back(d == axis + 1 ? shape[d] * stride : shape[d]);
    }
    merged.from = turned.to;
    NodeId tap = b.slice(n.operands[0], axis, k, one);
    tap = padded(b, b.rearrange(tap, turned, apart), axis + 1, 0, n.stride - 1, stride);
    tap = b.rearrange(tap, merged, whole);
    // Cut to what lies on the axis.
    const std::int64_t start = n.offset + k * n.dilation, cut = std::max<std::int64_t>(-start, 0);
    const std::int64_t before = std::max<std::int64_t>(start, 0);
    const std::int64_t left = std::min(windows * n.stride - cut, length - before);
    if (left <= 0) continue;
    tap = b.slice(tap, axis, cut, left == length ? n.shape[axis] : Dim::constant(left));
    tap = padded(b, tap, axis, before, length - before - left, n.shape[axis]);
    sum = sum == graph::none ? tap : b.add(sum, tap);
  }
  return sum == graph::none ? b.broadcast(b.constant(0), n.shape, {}) : sum;
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
      case Op::unfold:
        return unfold(b, n);
      case Op::fold:
        return fold(b, n);
      case Op::gather:
        return gather(b, n.operands[0], n.operands[1]);
      case Op::stop_gradient:
        return n.operands[0];
      case Op::dropout:
        return dropout(b, n, random);
        TESSERA_ELEMENTWISE_OPS(TESSERA_OP_CASE)
        TESSERA_LEAF_OPS(TESSERA_OP_CASE)
        TESSERA_REGION_OPS(TESSERA_OP_CASE)
      case Op::broadcast:
      case Op::integers:
      case Op::one_hot:
      case Op::rearrange:
      case Op::slice:
      case Op::concat:
      case Op::cache:
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
