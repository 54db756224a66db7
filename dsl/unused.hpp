// What a declaration computes and leaves out, and the parameters that training could not change.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "dsl/graph/graph.hpp"
#include "dsl/graph/op_name.hpp"
#include "dsl/text.hpp"

namespace tessera::detail {

/// Whether the result stays the same when operand k changes a little: no gradient flows there.
inline bool is_flat(graph::Op op, std::size_t k) {
  switch (op) {
    case graph::Op::step:
    case graph::Op::equal:
    case graph::Op::integers:
    case graph::Op::one_hot:
    case graph::Op::stop_gradient:
      return true;
    case graph::Op::select:
      return k == 0;
    case graph::Op::gather:
    case graph::Op::cross_entropy:
      return k == 1;
    default:
      return false;
  }
}

/// By node: whether one of `open` depends on it, at all or (`smoothly`) so that a gradient flows back to it.
inline std::vector<bool> reached(const graph::Graph& g, std::vector<graph::NodeId> open, bool smoothly) {
  std::vector<bool> seen(g.nodes.size());
  while (!open.empty()) {
    const graph::NodeId id = open.back();
    open.pop_back();
    if (seen[static_cast<std::size_t>(id)]) continue;
    seen[static_cast<std::size_t>(id)] = true;
    const graph::Node& n = g[id];
    for (std::size_t k = 0; k < n.operands.size(); ++k)
      if (!smoothly || !is_flat(n.op, k)) open.push_back(n.operands[k]);
    if (n.op != graph::Op::carry) continue;
    // A layer's input is what the layer before yielded.
    const graph::Region& region = g.regions[static_cast<std::size_t>(n.region)];
    for (std::size_t k = 0; k < region.carries.size(); ++k)
      if (region.carries[k] == id) open.push_back(region.yields[k]);
  }
  return seen;
}

/// "add [B, N+1=197, D=192] of blocks.{}.attn"; an input or a table by its name, a repeated block by its path
inline std::string described(const graph::Graph& g, const graph::Node& n) {
  if (!n.name.empty()) return n.name;
  const bool block = n.op == graph::Op::carry_out;
  Text t;
  t.put(block ? "the result" : graph::op_name(n.op)).put(" [");
  for (std::size_t i = 0; i < n.shape.size(); ++i) {
    t.put(i ? ", " : "");
    n.shape[i].print(t);
  }
  t.put("]");
  const std::string& path = block ? g.regions[static_cast<std::size_t>(g[n.operands[0]].region)].path : n.path;
  return std::string(t.view()) + (path.empty() ? "" : " of " + path);
}

/// Throws std::logic_error when a result is computed that no output depends on, or when a parameter would get no
/// gradient or, where there is no loss, is not read. Of results that follow from one another, the last is named;
/// parameters are named by their keys.
inline void demand_that_everything_is_used(const graph::Graph& g) {
  std::vector<graph::NodeId> outputs, loss;
  for (const graph::Output& output : g.outputs) {
    outputs.push_back(output.node);
    if (output.kind == graph::Output::Kind::loss) loss.push_back(output.node);
  }
  const std::vector<bool> used = reached(g, outputs, false), learns = reached(g, loss, true);
  std::vector<bool> read(g.nodes.size());
  for (const graph::Node& n : g.nodes)
    for (const graph::NodeId operand : n.operands) read[static_cast<std::size_t>(operand)] = true;
  for (const graph::Region& region : g.regions)
    for (const graph::NodeId yield : region.yields) read[static_cast<std::size_t>(yield)] = true;
  std::string unused, dead;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const graph::Node& n = g.nodes[i];
    if (n.op == graph::Op::parameter && !loss.empty()) {
      if (!learns[i] && n.trained) dead += (dead.empty() ? "" : ", ") + n.name;
    } else if (n.op == graph::Op::carry_out && used[static_cast<std::size_t>(n.operands[0])]) {
      continue;  // what layers hand on for one another
    } else if (!used[i] && !read[i]) {
      unused += (unused.empty() ? "" : ", ") + described(g, n);
    }
  }
  if (unused.empty() && dead.empty()) return;
  std::string sentence = g.name;
  if (!unused.empty()) sentence += " does not use " + unused;
  if (!dead.empty()) sentence += (unused.empty() ? ": " : "; ") + ("no gradient would reach " + dead);
  throw std::logic_error(sentence);
}

}  // namespace tessera::detail
