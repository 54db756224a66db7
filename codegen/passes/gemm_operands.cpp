#include "codegen/passes/gemm_operands.hpp"

#include <range/v3/algorithm/contains.hpp>

#include "codegen/passes/rewrite.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;

namespace {

/// A copy of x with dim `axis` behind the others.
NodeId moved_last(Builder& b, NodeId x, std::size_t axis) {
  std::vector<int> order = other_axes(b.shape(x).size(), {static_cast<int>(axis)});
  order.push_back(static_cast<int>(axis));
  return b.unary(Op::copy, permuted(b, x, order));
}

bool large(const Dim& d) { return d.known() && d.value() >= least_n; }

}  // namespace

Graph copy_operands_n_innermost(const Graph& graph) {
  return rewrite(graph, [](Builder& b, const Node& n, NodeId) {
    if (n.op != Op::einsum || n.operands.size() != 2 || n.shape.empty()) return b.append(n);
    const std::vector<int>&left = n.letters[0], &right = n.letters[1], &result = n.letters[2];
    if (left.empty() || right.empty() || left.back() != right.back() || ranges::contains(result, left.back()))
      return b.append(n);
    const int column = result.back();
    const std::size_t from = ranges::contains(right, column) ? 1 : 0;
    const NodeId factor = n.operands[from];
    if (ranges::contains(n.letters[1 - from], column) || b.graph()[factor].op == Op::parameter ||
        !large(n.shape.back()) || !large(b.shape(factor).back()))
      return b.append(n);
    Node product = n;
    std::vector<int>& letters = product.letters[from];
    const auto at = std::find(letters.begin(), letters.end(), column);
    product.operands[from] = moved_last(b, factor, static_cast<std::size_t>(at - letters.begin()));
    letters.erase(at);
    letters.push_back(column);
    return b.append(std::move(product));
  });
}

}  // namespace tessera::codegen
