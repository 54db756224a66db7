#include "codegen/passes/headless.hpp"

#include <fmt/format.h>

#include <array>
#include <range/v3/algorithm/any_of.hpp>
#include <utility>

#include "codegen/error.hpp"
#include "codegen/passes/inspect.hpp"
#include "codegen/passes/op.hpp"
#include "codegen/passes/pipeline.hpp"
#include "codegen/passes/rewrite.hpp"
#include "dsl/graph/builder.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Output;

namespace {

NodeId without_broadcast(const Graph& g, NodeId id) {
  while (g[id].op == Op::broadcast) id = g[id].operands[0];
  return id;
}

/// The operand beside one that, broadcast or not, is the same for every image; none where neither is one.
NodeId beside(const Graph& g, const Node& n, Op constant) {
  for (std::size_t k = 0; n.operands.size() == 2 && k < 2; ++k)
    if (g[without_broadcast(g, n.operands[k])].op == constant) return n.operands[1 - k];
  return graph::none;
}

/// The row that a linear map reads, with or without a bias behind it; none where the node is no such map.
NodeId read_by_map(const Graph& g, NodeId id) {
  if (g[id].op == Op::add)
    if (const NodeId mapped = beside(g, g[id], Op::parameter); mapped != graph::none) id = mapped;
  const NodeId row = g[id].op == Op::einsum ? beside(g, g[id], Op::parameter) : graph::none;
  return row == graph::none || g[row].shape.size() != 2 || !grows(g[row]) ? graph::none : row;
}

NodeId outputs_of(const Graph& g) {
  for (const Output& output : g.outputs)
    if (output.kind == Output::Kind::value) return output.node;
  return graph::none;
}

/// What the head reads; the mean of what two heads read is appended to the graph. none: there is no head.
NodeId read_by_head(Graph& g) {
  NodeId id = outputs_of(g);
  if (id == graph::none) return id;
  while (g[id].op == Op::softmax || g[id].op == Op::log_softmax) id = g[id].operands[0];
  if (const NodeId row = read_by_map(g, id); row != graph::none) return row;
  const NodeId sum = g[id].op == Op::multiply ? beside(g, g[id], Op::constant) : graph::none;
  if (sum == graph::none || g[sum].op != Op::add || g[without_broadcast(g, g[id].operands[1])].value != 0.5)
    return graph::none;
  const NodeId first = read_by_map(g, g[sum].operands[0]), second = read_by_map(g, g[sum].operands[1]);
  if (first == graph::none || second == graph::none || g[first].shape != g[second].shape) return graph::none;
  graph::Builder b(g);
  const NodeId both = b.add(first, second);
  return b.multiply(both, b.constant(0.5));
}

/// The last value of the shape of what the first stack gives that is computed of it: behind a norm, where there is one.
/// none: there is no stack of tokens.
NodeId tokens_of(const Graph& g) {
  NodeId tokens = graph::none;
  std::vector<bool> depends(g.nodes.size(), false);  // on what the stack gives
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    const bool stack = n.op == Op::carry_out && n.shape.size() == 3 && grows(n) && n.shape[1].known();
    if (tokens == graph::none && !stack) continue;
    depends[i] = tokens == graph::none || ranges::any_of(n.operands, [&](NodeId o) { return depends[at(o)]; });
    const bool shaped = tokens == graph::none || n.shape == g[tokens].shape;
    if (depends[i] && shaped && n.region == 0 && n.op != Op::broadcast) tokens = static_cast<NodeId>(i);
  }
  return tokens;
}

/// Whether the outputs are a feature map [B, C, y, x], made of one [B, y, x, D] that a stack of blocks gives.
bool gives_map(const Graph& g) {
  const std::vector<Dim>& outputs = g[outputs_of(g)].shape;
  return outputs.size() == 4 && ranges::any_of(g.nodes, [&](const Node& n) {
           return n.op == Op::carry_out && n.shape.size() == 4 && grows(n) && n.shape[1] == outputs[2] &&
                  n.shape[2] == outputs[3];
         });
}

/// A feature map [B, C, y, x] as tokens [B, y x, C], and as those of one layer, [B, 1, y x, C].
std::array<NodeId, 2> tokens_of_map(Graph& g, NodeId map) {
  const std::vector<Dim> s = g[map].shape;
  const std::vector<std::vector<int>> each{{0}, {1}, {2}, {3}};
  graph::Builder b(g);
  return {b.rearrange(map, {s, each, {{0}, {2, 3}, {1}}}, {s[0], s[2] * s[3], s[1]}),
          b.rearrange(map, {s, each, {{0}, {}, {2, 3}, {1}}}, {s[0], Dim::constant(1), s[2] * s[3], s[1]})};
}

/// The softmax of a learned query, whose probabilities weigh what follows the stack; none where there is none.
NodeId pooling_of(const Graph& g, NodeId tokens) {
  for (std::size_t i = at(tokens) + 1; tokens != graph::none && i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    if (n.op == Op::softmax && n.region == 0 && n.shape.size() == 3 && n.axes[0] == 2 && grows(n) &&
        weighs_values(g, static_cast<NodeId>(i)))
      return static_cast<NodeId>(i);
  }
  return graph::none;
}

}  // namespace

bool has_head(const Graph& declared) {
  Graph g = declared;
  return read_by_head(g) != graph::none;
}

bool embeds(const Graph& declared) {
  if (has_head(declared)) return true;
  const NodeId outputs = outputs_of(declared);
  if (has_loss(declared) || outputs == graph::none || !grows(declared[outputs])) return false;
  const std::vector<Dim>& shape = declared[outputs].shape;
  if (shape.size() != 4) return shape.size() == 2;
  if (gives_map(declared)) return true;
  const NodeId tokens = tokens_of(declared);
  return tokens != graph::none && declared[tokens].shape[1] == shape[2] && declared[tokens].shape[2] == shape[3];
}

Graph embedding(const Graph& declared) {
  Graph g = declared;
  NodeId features = read_by_head(g);
  NodeId tokens = tokens_of(declared);
  if (features == graph::none) {
    features = outputs_of(g);
    if (gives_map(declared)) {
      const auto [all, of_one_layer] = tokens_of_map(g, features);
      tokens = all;
      features = of_one_layer;
    }
  }
  g.outputs = {{Output::Kind::value, "features", features, graph::none}};
  if (tokens != graph::none) g.outputs.push_back({Output::Kind::value, "tokens", tokens, graph::none});
  if (const NodeId pooling = pooling_of(declared, tokens); pooling != graph::none)
    g.outputs.push_back({Output::Kind::value, "pooling", pooling, graph::none});
  return remove_dead(std::move(g));
}

}  // namespace tessera::codegen
