#include "codegen/passes/rewrite.hpp"

#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/is_sorted.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/iota.hpp>
#include <utility>

#include "codegen/passes/op.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Output;
using graph::Region;

namespace {

/// Carries, yields and outputs follow their nodes.
void renumber(Graph& graph, const std::vector<NodeId>& map) {
  for (Region& r : graph.regions) {
    for (NodeId& id : r.carries) id = map[at(id)];
    for (NodeId& id : r.yields) id = map[at(id)];
  }
  for (Output& o : graph.outputs) {
    o.node = map[at(o.node)];
    if (o.parameter != graph::none) o.parameter = map[at(o.parameter)];
  }
}

/// Which nodes the outputs depend on; a carry depends on its yield as well.
std::vector<bool> live(const Graph& graph) {
  std::vector<NodeId> yield_of(graph.nodes.size(), graph::none), open;
  for (const Region& r : graph.regions)
    for (std::size_t i = 0; i < r.carries.size(); ++i) yield_of[at(r.carries[i])] = r.yields[i];
  std::vector<bool> alive(graph.nodes.size(), false);
  auto mark = [&](NodeId id) {
    if (id == graph::none || alive[at(id)]) return;
    alive[at(id)] = true;
    open.push_back(id);
  };
  for (const Output& o : graph.outputs) {
    mark(o.node);
    mark(o.parameter);
  }
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (NodeId o : graph[id].operands) mark(o);
    mark(yield_of[at(id)]);
  }
  return alive;
}

}  // namespace

Graph rewrite(const Graph& graph, const Rule& rule) {
  Graph result{graph.name,    graph.recipe, graph.depth,   {},         graph.regions,
               graph.outputs, graph.losses, graph.modules, graph.lines};
  result.nodes.reserve(graph.nodes.size());
  std::vector<NodeId> map(graph.nodes.size(), graph::none);
  Builder builder(result);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node node = graph.nodes[i];
    for (NodeId& o : node.operands) o = map[at(o)];
    builder.region = node.region;
    builder.stand_for(node);
    map[i] = rule(builder, node, static_cast<NodeId>(i));
  }
  renumber(result, map);
  return result;
}

Graph remove_dead(Graph graph) {
  const std::vector<bool> alive = live(graph);
  for (Region& r : graph.regions) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < r.carries.size(); ++i) {
      if (!alive[at(r.carries[i])]) continue;
      r.carries[kept] = r.carries[i];
      r.yields[kept++] = r.yields[i];
    }
    r.carries.resize(kept);
    r.yields.resize(kept);
  }
  // Nodes and regions are closed up where they are: to copy them took a third of the time that a VQGAN's emission took.
  std::vector<NodeId> map(graph.nodes.size(), graph::none);
  std::vector<bool> used(graph.regions.size(), false);
  used[0] = true;
  std::size_t nodes = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!alive[i]) continue;
    if (nodes != i) graph.nodes[nodes] = std::move(graph.nodes[i]);
    Node& node = graph.nodes[nodes];
    for (NodeId& o : node.operands) o = map[at(o)];
    used[node.region] = true;
    map[i] = static_cast<NodeId>(nodes++);
  }
  graph.nodes.resize(nodes);
  renumber(graph, map);
  std::vector<int> number(graph.regions.size(), graph::none);
  std::vector<Region> regions;
  for (std::size_t r = 0; r < graph.regions.size(); ++r) {
    if (!used[r]) continue;
    number[r] = static_cast<int>(regions.size());
    regions.push_back(std::move(graph.regions[r]));
  }
  for (Region& r : regions)
    if (r.mirror != graph::none) r.mirror = number[r.mirror];
  graph.regions = std::move(regions);
  for (Node& n : graph.nodes) n.region = number[n.region];
  return graph;
}

NodeId extent_of(Builder& builder, const Dim& dim) {
  return dim.known() ? builder.constant(static_cast<double>(dim.value())) : builder.extent(dim);
}

NodeId rows_of(Builder& builder, const std::vector<Dim>& logits) {
  Dim rows = logits[0];
  for (std::size_t i = 1; i + 1 < logits.size(); ++i) rows = rows * logits[i];
  return extent_of(builder, rows);
}

NodeId permuted(Builder& builder, NodeId x, const std::vector<int>& order) {
  if (ranges::is_sorted(order)) return x;
  graph::Rearrangement r;
  std::vector<Dim> shape;
  for (std::size_t d = 0; d < order.size(); ++d) {
    r.atoms.push_back(builder.shape(x)[d]);
    r.from.push_back({static_cast<int>(d)});
    r.to.push_back({order[d]});
    shape.push_back(builder.shape(x)[static_cast<std::size_t>(order[d])]);
  }
  return builder.rearrange(x, std::move(r), std::move(shape));
}

std::vector<int> other_axes(std::size_t rank, const std::vector<int>& axes) {
  return ranges::views::iota(0, static_cast<int>(rank)) |
         ranges::views::filter([&](int axis) { return !ranges::contains(axes, axis); }) | ranges::to<std::vector>();
}

}  // namespace tessera::codegen
