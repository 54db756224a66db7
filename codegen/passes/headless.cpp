#include "codegen/passes/headless.hpp"

#include <fmt/format.h>

#include "codegen/error.hpp"
#include "codegen/passes/rewrite.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Output;

namespace {

bool is_parameter(const Graph& g, NodeId id) {
  while (g[id].op == Op::broadcast) id = g[id].operands[0];
  return g[id].op == Op::parameter;
}

/// The operand beside a parameter; none where neither is one.
NodeId beside_parameter(const Graph& g, const Node& n) {
  for (std::size_t k = 0; n.operands.size() == 2 && k < 2; ++k)
    if (is_parameter(g, n.operands[k])) return n.operands[1 - k];
  return graph::none;
}

}  // namespace

Graph headless(const Graph& declared) {
  Graph g = declared;
  std::erase_if(g.outputs, [](const Output& output) { return output.kind != Output::Kind::value; });
  NodeId& id = g.outputs.at(0).node;
  while (g[id].op == Op::softmax || g[id].op == Op::log_softmax) id = g[id].operands[0];
  if (g[id].op == Op::add)
    if (const NodeId mapped = beside_parameter(g, g[id]); mapped != graph::none) id = mapped;
  const NodeId features = g[id].op == Op::einsum ? beside_parameter(g, g[id]) : graph::none;
  if (features == graph::none || g[features].shape.size() != 2)
    throw Error(
        fmt::format("{} has no embedding: its outputs are not a linear map of a row of numbers", declared.name));
  id = features;
  g.name += "_embedding";
  g.recipe = {};
  return remove_dead(g);
}

}  // namespace tessera::codegen
