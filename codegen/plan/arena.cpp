#include "codegen/plan/arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/find.hpp>
#include <range/v3/algorithm/find_if.hpp>

#include "codegen/error.hpp"
#include "codegen/passes/op.hpp"
#include "codegen/plan/gemm.hpp"
#include "codegen/plan/layout.hpp"

namespace tessera::codegen {

namespace {

std::int64_t in_lines(std::int64_t reals) { return (reals + 15) / 16 * 16; }

}  // namespace

std::string ArenaEntry::key_of(int layer) const { return of_layer(key, layer); }

const ArenaEntry& Arena::find(const std::string& key) const {
  auto at = ranges::find(entries, key, &ArenaEntry::key);
  if (at == entries.end()) throw Error(fmt::format("no parameter is called {}", key));
  return *at;
}

std::pair<const ArenaEntry*, int> Arena::place(const std::string& name) const {
  for (const ArenaEntry& e : entries) {
    if (e.key == name) return {&e, -1};
    for (int layer = 0; layer < e.count; ++layer)
      if (e.key_of(layer) == name) return {&e, e.count == 1 ? -1 : layer};
  }
  throw Error(fmt::format("no parameter is called {}", name));
}

PackedEntry packed_copy(const KernelProgram& program, const Tensor& t, const Arena& parameters) {
  PackedEntry e;
  if (t.packing == Packing::folded) {
    e.key = t.name;
    e.made_as = t.made_as;
    e.packing = t.packing;
    e.element = t.element;
    e.columns = layout_for_gemms(t).size.fixed;
    e.last = t.slots - 1;
    return e;
  }
  const auto [parameter, layer] = parameters.place(program.graph[t.parameter].name);
  e.key = parameter->key;
  e.packing = t.packing;
  e.transposed = t.transposed;
  e.element = t.element;
  e.first = layer < 0 ? 0 : layer;
  e.last = layer < 0 ? t.slots - 1 : layer;
  const bool panels = e.packing == Packing::panels;
  e.columns = t.shape.empty() ? 1 : t.shape[0].value();
  for (std::size_t d = 1; d < t.shape.size(); ++d) (panels ? e.depth : e.columns) *= t.shape[d].value();
  for (std::size_t d = 2; d < t.shape.size() && t.transposed; ++d) e.taps *= t.shape[d].value();
  return e;
}

namespace {

bool same_copy(const PackedEntry& a, const PackedEntry& b) {
  return (a.packing == Packing::folded ? a.made_as == b.made_as : a.key == b.key) && a.packing == b.packing &&
         a.transposed == b.transposed && a.element == b.element;
}

}  // namespace

const PackedEntry* PackedArena::find(const PackedEntry& wanted) const {
  auto at = ranges::find_if(entries, [&](const PackedEntry& e) {
    return same_copy(e, wanted) && e.first <= wanted.first && wanted.last <= e.last;
  });
  return at == entries.end() ? nullptr : &*at;
}

bool packed_by_rows(const PackedEntry& e) { return e.packing == Packing::panels && !quantized(e.element); }

bool updates_while_packing(const Arena& parameters, const PackedArena& packed) {
  return ranges::all_of(parameters.entries, &ArenaEntry::trained) && ranges::any_of(packed.entries, packed_by_rows);
}

bool PackedArena::packs_by_rows(const ArenaEntry& parameter, int layer) const {
  return ranges::any_of(entries, [&](const PackedEntry& e) {
    return packed_by_rows(e) && e.key == parameter.key && e.first <= layer && layer <= e.last;
  });
}

PackedArena make_packed_arena(const std::vector<Plan>& plans, const Arena& parameters,
                              const std::vector<Target>& targets) {
  PackedArena arena;
  const auto place = [&](std::vector<PackedEntry>& found) {
    for (PackedEntry& e : found) {
      const bool panels = e.packing == Packing::panels;
      if (!panels) e.reals = e.columns;
      for (const Target& target : targets) {  // the last panel of a matrix may be part empty
        if (!panels) break;
        const std::int64_t width = tile_vectors(target, e.columns, e.element) * target.lanes;
        const std::int64_t deep = uses_tile_unit(e.element, target) ? panel_k(e.element, e.depth) : e.depth;
        e.reals = std::max(e.reals, (e.columns + width - 1) / width * width * deep);
      }
      const std::int64_t together = values_in_real(e.element);
      e.reals = in_lines((e.reals + together - 1) / together);
      e.offset = arena.reals;
      arena.reals += e.reals * e.count();
      arena.entries.push_back(std::move(e));
    }
  };
  for (const bool trained : {false, true}) {
    std::vector<PackedEntry> found;
    for (const Plan& plan : plans) {
      if (differentiates(plan.program) != trained) continue;
      for (const Tensor& t : plan.program.tensors) {
        if (t.storage != Storage::packed) continue;
        const PackedEntry e = packed_copy(plan.program, t, parameters);
        if (arena.find(e)) continue;
        const auto other = ranges::find_if(found, [&](const PackedEntry& o) { return same_copy(o, e); });
        if (other == found.end()) {
          found.push_back(e);
        } else {  // of all layers between
          other->first = std::min(other->first, e.first);
          other->last = std::max(other->last, e.last);
        }
      }
    }
    place(found);
    if (trained) continue;
    arena.scratch = arena.reals;
    std::int64_t scratch = 0;
    for (const Plan& plan : plans)
      for (const Plan& folded : plan.folded) scratch = std::max(scratch, folded.scratch.fixed);
    arena.reals += scratch;
    arena.forward_reals = arena.reals;
  }
  return arena;
}

Arena make_arena(const graph::Graph& declared, const KernelProgram& p) {
  // When each gradient is written, in running order; a repeated block's come as one.
  std::map<std::string, std::pair<int, int>> finished;  // key -> (time at the top level, time within)
  int now = 0;
  for (std::size_t top = 0; top < p.order[0].size() && declared.recipe.phase == 0; ++top) {
    const Item& item = p.order[0][top];
    std::vector<Item> inside{item};
    if (item.region >= 0) inside = p.order[item.region];
    for (const Item& i : inside)
      for_each_access(p.kernels[i.kernel], [&](const Access& a, bool writes) {
        const Tensor& t = p.tensors[a.tensor];
        if (writes && t.storage == Storage::gradient && t.parameter != graph::none)
          finished[p.graph[t.parameter].name] = {static_cast<int>(top), now++};
      });
  }
  std::vector<std::pair<std::pair<int, int>, ArenaEntry>> found;
  std::map<std::string, int> region_of;
  for (const graph::Node& n : declared.nodes) {
    if (n.op != graph::Op::parameter) continue;
    ArenaEntry e;
    e.key = n.name;
    e.shape = n.shape;
    e.init = n.init;
    e.decay = n.decay;
    e.trained = n.trained;
    e.assigned = ranges::any_of(declared.outputs, [&](const graph::Output& o) {
      return o.kind == graph::Output::Kind::gradient && o.name == n.name;
    });
    e.count = declared.regions[n.region].count;
    e.reals = 1;
    for (const Dim& d : n.shape) e.reals *= d.value();
    region_of[n.name] = n.region;
    // All layers lie together, the last one too where it runs by itself.
    const auto written = finished.contains(n.name) ? finished.find(n.name) : finished.find(e.key_of(e.count - 1));
    // What has no gradient, a running mean for instance, comes last.
    const auto time = finished.empty()            ? std::pair{0, 0}
                      : written == finished.end() ? std::pair{now, 0}
                                                  : written->second;
    found.push_back({time, std::move(e)});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });

  Arena arena;
  for (std::size_t i = 0; i < found.size();) {
    std::size_t end = i + 1;
    int region = region_of.at(found[i].second.key);
    while (region && end < found.size() && region_of.at(found[end].second.key) == region) ++end;
    std::int64_t layer = 0;
    for (std::size_t k = i; k < end; ++k) {
      found[k].second.offset = arena.reals + layer;
      layer += in_lines(found[k].second.reals);
    }
    for (std::size_t k = i; k < end; ++k) {
      found[k].second.stride = found[k].second.count > 1 ? layer : 0;
      arena.entries.push_back(found[k].second);
    }
    arena.reals += layer * found[i].second.count;
    i = end;
  }
  return arena;
}

}  // namespace tessera::codegen
