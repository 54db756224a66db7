#include "codegen/kernels/analysis.hpp"

#include <algorithm>

#include "dsl/graph/builder.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::Output;
using graph::Rearrangement;

Affine axis_index(int axis) {
  Affine a;
  a.parts.push_back({axis, 1});
  return a;
}

Affine operator+(Affine a, const Affine& b) {
  a.offset += b.offset;
  for (const Affine::Part& part : b.parts) {
    auto at = std::find_if(a.parts.begin(), a.parts.end(), [&](const auto& p) { return p.axis >= part.axis; });
    if (at != a.parts.end() && at->axis == part.axis)
      at->coefficient += part.coefficient;
    else
      a.parts.insert(at, part);
  }
  std::erase_if(a.parts, [](const auto& p) { return p.coefficient == 0; });
  return a;
}

Affine operator*(Affine a, std::int64_t factor) {
  a.offset *= factor;
  for (Affine::Part& part : a.parts) part.coefficient *= factor;
  if (factor == 0) a.parts.clear();
  return a;
}

Rearrangement canonical(const Rearrangement& r) {
  Rearrangement c = r;
  for (auto* side : {&c.from, &c.to})
    for (std::vector<int>& group : *side)
      std::erase_if(group, [&](int atom) { return c.atoms[atom] == Dim::constant(1); });
  // Merge b into a where "a b" stands side by side in a group on the left and in a group on the right.
  auto follows = [](const std::vector<std::vector<int>>& side, int a, int b) {
    for (const std::vector<int>& group : side)
      for (std::size_t i = 0; i + 1 < group.size(); ++i)
        if (group[i] == a && group[i + 1] == b) return true;
    return false;
  };
  for (bool again = true; again;) {
    again = false;
    for (std::size_t g = 0; g < c.from.size() && !again; ++g)
      for (std::size_t i = 0; i + 1 < c.from[g].size() && !again; ++i) {
        int a = c.from[g][i], b = c.from[g][i + 1];
        if (!follows(c.to, a, b)) continue;
        c.atoms[a] = c.atoms[a] * c.atoms[b];
        for (auto* side : {&c.from, &c.to})
          for (std::vector<int>& group : *side) std::erase(group, b);
        again = true;
      }
  }
  return c;
}

namespace {

/// From an index over `given` groups, each of at most one atom, to an index over `wanted` groups.
std::optional<std::vector<Affine>> convert(const Rearrangement& c, const std::vector<std::vector<int>>& given,
                                           const std::vector<std::vector<int>>& wanted,
                                           const std::vector<Affine>& index) {
  std::vector<Affine> atom(c.atoms.size());
  for (std::size_t d = 0; d < given.size(); ++d) {
    if (given[d].size() > 1) return std::nullopt;
    if (given[d].size() == 1) atom[given[d][0]] = index[d];
  }
  std::vector<Affine> result;
  for (const std::vector<int>& group : wanted) {
    Affine sum;
    std::int64_t stride = 1;
    for (std::size_t i = group.size(); i-- > 0;) {
      auto a = static_cast<std::size_t>(group[i]);
      sum = sum + atom[a] * stride;
      if (i == 0) break;
      Extent e = extent(c.atoms[a]);
      if (!e.known()) return std::nullopt;
      stride *= e.fixed;
    }
    result.push_back(sum);
  }
  return result;
}

std::vector<Affine> plain_index(std::size_t dims) {
  std::vector<Affine> index;
  for (std::size_t i = 0; i < dims; ++i) index.push_back(axis_index(static_cast<int>(i)));
  return index;
}

bool reads_as_view(const Node& n) {
  return n.op == Op::rearrange && operand_index(n.rearrangement, plain_index(n.shape.size())).has_value();
}
bool writes_as_view(const Graph& graph, const Node& n) {
  return n.op == Op::rearrange &&
         result_index(n.rearrangement, plain_index(graph[n.operands[0]].shape.size())).has_value();
}

/// Whether the reduction runs over the batch.
bool reduces_batch(const Graph& graph, const Node& n) {
  if (!is_reduction(n.op)) return false;
  const Node& x = graph[n.operands[0]];
  return std::any_of(n.axes.begin(), n.axes.end(), [&](int axis) { return !x.shape[axis].known(); });
}

/// By node: whether numbers and the places of its elements give it by operations as cheap as a load, as a causal mask.
std::vector<bool> follow_from_places(const Graph& graph) {
  std::vector<bool> known;
  for (const Node& n : graph.nodes) {
    const bool number = n.op == Op::arange || n.op == Op::constant || n.op == Op::extent;
    const bool moves = n.op == Op::broadcast || n.op == Op::slice || reads_as_view(n);
    const bool cheap = is_elementwise(n.op) && row_of(n.op).cpu_cost <= 1;
    known.push_back(number || ((moves || cheap) && std::all_of(n.operands.begin(), n.operands.end(), [&](NodeId o) {
                                 return known[static_cast<std::size_t>(o)];
                               })));
  }
  return known;
}

}  // namespace

std::optional<std::vector<Affine>> operand_index(const Rearrangement& r, const std::vector<Affine>& index) {
  Rearrangement c = canonical(r);
  return convert(c, c.to, c.from, index);
}
std::optional<std::vector<Affine>> result_index(const Rearrangement& r, const std::vector<Affine>& index) {
  Rearrangement c = canonical(r);
  return convert(c, c.from, c.to, index);
}

Analysis analyse(const Graph& graph) {
  std::size_t count = graph.nodes.size();
  Analysis a{std::vector<Role>(count, Role::member), std::vector<Claim>(count), std::vector<bool>(count, false)};
  std::vector<int> uses(count, 0);
  std::vector<NodeId> user(count, graph::none);
  std::vector<bool> factor(count, false);  // of a product, which would compute it anew for each of its rows
  for (std::size_t i = 0; i < count; ++i)
    for (NodeId o : graph.nodes[i].operands) {
      ++uses[o];
      user[o] = static_cast<NodeId>(i);
      if (graph.nodes[i].op == Op::einsum) factor[o] = true;
    }

  const std::vector<bool> known = follow_from_places(graph);
  for (std::size_t i = 0; i < count; ++i) {
    const Node& n = graph.nodes[i];
    auto inlined = [&](NodeId o) { return a.role[o] == Role::inlined; };
    switch (n.op) {
      case Op::input:
      case Op::parameter:
      case Op::table:
      case Op::carry:
      case Op::carry_out:
        a.role[i] = Role::leaf;
        break;
      case Op::arange:
      case Op::constant:
      case Op::extent:
      case Op::keep:
      case Op::broadcast:
      case Op::slice:
      case Op::unfold:
      case Op::integers:
      case Op::one_hot:
        a.role[i] = Role::inlined;
        break;
      case Op::concat:
        a.role[i] = Role::storage;
        break;
      case Op::rearrange:
        if (reads_as_view(n)) a.role[i] = Role::inlined;
        break;  // whether it is storage is settled below, with the claims
        TESSERA_ELEMENTWISE_OPS(TESSERA_OP_CASE)
        if (n.op != Op::copy && (n.shape.empty() || (known[i] && !factor[i])) &&
            std::all_of(n.operands.begin(), n.operands.end(), inlined))
          a.role[i] = Role::inlined;
        break;
      case Op::cache:
        TESSERA_CONTRACTION_OPS(TESSERA_OP_CASE)
        TESSERA_REDUCTION_OPS(TESSERA_OP_CASE)
        TESSERA_COMPOSITE_OPS(TESSERA_OP_CASE)
        break;
    }
  }

  // Claims, in a fixed order: outputs, carries, concats, merging rearrangements. The first one wins; legalise has put a
  // copy where a second one would have come.
  auto claim = [&](NodeId id, Claim c) {
    auto i = static_cast<std::size_t>(id);
    if (a.claim[i].kind != Claim::Kind::none || graph[id].op == Op::cache) return false;  // its memory is the caller's
    if (a.role[i] != Role::member && a.role[i] != Role::storage) return false;
    a.claim[i] = c;
    return true;
  };
  // A concat's part that would be a view of a product becomes the place that the product is written into.
  auto claim_through_view = [&](NodeId view, const Claim& c) {
    const auto i = static_cast<std::size_t>(view);
    const Node& n = graph[view];
    if (a.role[i] != Role::inlined || a.claim[i].kind != Claim::Kind::none || !writes_as_view(graph, n)) return;
    const NodeId product = n.operands[0];
    if (graph[product].op != Op::einsum || graph[product].region != n.region) return;
    if (!claim(product, {Claim::Kind::merged, view})) return;
    a.role[i] = Role::storage;
    a.claim[i] = c;
  };
  for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
    Claim c;
    c.kind = Claim::Kind::output;
    c.output = static_cast<int>(k);
    claim(graph.outputs[k].node, c);
  }
  for (std::size_t r = 1; r < graph.regions.size(); ++r) {
    const graph::Region& region = graph.regions[r];
    for (std::size_t k = 0; k < region.carries.size(); ++k) {
      claim(region.yields[k], {Claim::Kind::yield, region.carries[k]});
      claim(graph[region.carries[k]].operands[0], {Claim::Kind::initial, region.carries[k]});
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Node& n = graph.nodes[i];
    if (n.op == Op::concat) {
      std::int64_t offset = 0;
      for (NodeId part : n.operands) {
        const Claim c{Claim::Kind::part, static_cast<NodeId>(i), offset};
        if (graph[part].region == n.region && !claim(part, c)) claim_through_view(part, c);
        offset += extent(graph[part].shape[n.axes[0]]).fixed;
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Node& n = graph.nodes[i];
    if (n.op == Op::rearrange && a.role[i] == Role::member && writes_as_view(graph, n) &&
        graph[n.operands[0]].region == n.region && claim(n.operands[0], {Claim::Kind::merged, static_cast<NodeId>(i)}))
      a.role[i] = Role::storage;
  }

  // A product that only a sum over the batch reads is computed where it is summed, and never stored.
  for (std::size_t i = count; i-- > 0;) {
    const Node& n = graph.nodes[i];
    if (a.role[i] != Role::member || !is_elementwise(n.op) || n.op == Op::copy || uses[i] != 1 ||
        a.claim[i].kind != Claim::Kind::none)
      continue;
    if (reduces_batch(graph, graph[user[i]]) && graph[user[i]].region == n.region) a.role[i] = Role::inlined;
  }

  for (std::size_t i = 0; i < count; ++i) {
    const Node& n = graph.nodes[i];
    for (NodeId o : n.operands)
      if (graph[o].region != 0 && graph[o].region != n.region && n.op != Op::carry_out) a.kept[o] = true;
  }
  // What is inlined where it is read keeps its sources.
  for (std::size_t i = count; i-- > 0;)
    if (a.kept[i] && a.role[i] == Role::inlined)
      for (NodeId o : graph.nodes[i].operands)
        if (graph[o].region == graph.nodes[i].region) a.kept[o] = true;
  // Memory that holds a kept value is kept.
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < count; ++i) {
      const Claim& c = a.claim[i];
      bool inside = c.kind == Claim::Kind::part || c.kind == Claim::Kind::merged || c.kind == Claim::Kind::yield;
      if (!a.kept[i] || !inside || a.kept[c.by]) continue;
      a.kept[c.by] = again = true;
    }
  }
  return a;
}

Graph legalise(const Graph& graph) {
  Analysis a = analyse(graph);
  Graph out = graph;
  out.nodes.clear();
  std::vector<NodeId> map(graph.nodes.size(), graph::none);
  auto mapped = [&](NodeId id) { return map[id]; };
  auto copy_of = [&](NodeId id, int region) {  // id: in the old graph
    Node c;
    c.op = Op::copy;
    c.type = graph[id].type;
    c.region = region;
    c.operands = {mapped(id)};
    c.shape = graph[id].shape;
    c.path = graph[id].path;
    out.nodes.push_back(std::move(c));
    return static_cast<NodeId>(out.nodes.size()) - 1;
  };
  auto claimed = [&](NodeId id, Claim::Kind kind, NodeId by) {
    const Claim& c = a.claim[id];
    return c.kind == kind && c.by == by;
  };
  // An initial value may share the carry's memory only while nobody else needs it: with a slot a layer it is never
  // overwritten, otherwise it must have no other reader.
  std::vector<int> uses(graph.nodes.size(), 0);
  for (const Node& n : graph.nodes)
    for (NodeId o : n.operands) ++uses[o];

  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node n = graph.nodes[i];
    auto id = static_cast<NodeId>(i);
    std::vector<NodeId> seen;
    for (NodeId& o : n.operands) {
      NodeId old = o;
      bool fits = true;
      if (n.op == Op::concat)
        fits = claimed(old, Claim::Kind::part, id) && std::find(seen.begin(), seen.end(), old) == seen.end();
      if (n.op == Op::carry) fits = claimed(old, Claim::Kind::initial, id) && (a.kept[i] || uses[old] == 1);
      seen.push_back(old);
      // The copy of a carry's initial value belongs to the parent region, so it must stand before the region's nodes.
      o = fits ? mapped(old) : copy_of(old, n.op == Op::carry ? 0 : n.region);
    }
    out.nodes.push_back(std::move(n));
    map[i] = static_cast<NodeId>(out.nodes.size()) - 1;
    // A yield that cannot be written into the carry's memory is copied right after it was computed.
    for (std::size_t r = 1; r < graph.regions.size(); ++r)
      for (std::size_t k = 0; k < graph.regions[r].yields.size(); ++k)
        if (graph.regions[r].yields[k] == id) {
          bool fits = claimed(id, Claim::Kind::yield, graph.regions[r].carries[k]) &&
                      graph.nodes[i].region == static_cast<int>(r);
          out.regions[r].yields[k] = fits ? map[i] : copy_of(id, static_cast<int>(r));
        }
  }
  for (graph::Region& r : out.regions)
    for (NodeId& c : r.carries) c = mapped(c);
  for (std::size_t k = 0; k < out.outputs.size(); ++k) {
    Output& o = out.outputs[k];
    NodeId old = o.node;
    const Claim& c = a.claim[old];
    bool fits = c.kind == Claim::Kind::output && c.output == static_cast<int>(k) &&
                !(o.kind == Output::Kind::value && a.kept[old]);
    if (o.parameter != graph::none) o.parameter = mapped(o.parameter);
    o.node = fits ? mapped(old) : copy_of(old, graph[old].region);
  }
  return out;
}

}  // namespace tessera::codegen
