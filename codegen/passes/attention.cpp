#include "codegen/passes/attention.hpp"

#include <fmt/format.h>

#include <range/v3/algorithm/contains.hpp>

#include "codegen/passes/op.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Output;

namespace {

/// Whether some einsum sums over the softmax's axis.
bool weighs_values(const Graph& graph, NodeId softmax) {
  const auto axis = static_cast<std::size_t>(graph[softmax].axes[0]);
  for (const Node& n : graph.nodes) {
    if (n.op != Op::einsum) continue;
    for (std::size_t k = 0; k < n.operands.size(); ++k)
      if (n.operands[k] == softmax && !ranges::contains(n.letters.back(), n.letters[k][axis])) return true;
  }
  return false;
}

}  // namespace

Graph attention_outputs(const Graph& graph) {
  Graph result = graph;
  result.outputs.clear();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    const auto id = static_cast<NodeId>(i);
    const bool shaped = n.shape.size() == 3 || n.shape.size() == 4;
    if (n.op != Op::softmax || !shaped || n.axes[0] + 1 != static_cast<int>(n.shape.size()) ||
        !weighs_values(graph, id))
      continue;
    if (!result.outputs.empty()) {
      const Node& first = graph[result.outputs.front().node];
      if (first.region != n.region || first.shape != n.shape) {
        result.outputs.clear();
        return result;
      }
    }
    result.outputs.push_back(
        {Output::Kind::value, fmt::format("attention.{}", result.outputs.size()), id, graph::none});
  }
  return result;
}

}  // namespace tessera::codegen
