#include "codegen/plan/arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/find.hpp>
#include <range/v3/algorithm/find_if.hpp>

#include "codegen/error.hpp"

namespace tessera::codegen {

namespace {

std::int64_t rounded(std::int64_t reals) { return (reals + 15) / 16 * 16; }

}  // namespace

std::string of_layer(std::string text, int layer) {
  if (std::size_t at = text.find("{}"); at != std::string::npos) text.replace(at, 2, fmt::format("{}", layer));
  return text;
}

std::string ArenaEntry::key_of(int layer) const { return of_layer(key, layer); }

const ArenaEntry& Arena::find(const std::string& key) const {
  auto at = ranges::find(entries, key, &ArenaEntry::key);
  if (at == entries.end()) throw Error(fmt::format("no parameter is called {}", key));
  return *at;
}

bool PackedEntry::holds(const std::string& parameter, const Tensor& copy) const {
  return key == parameter && packing == copy.packing && transposed == copy.transposed && element == copy.element;
}

const PackedEntry& PackedArena::find(const std::string& key, const Tensor& copy) const {
  auto at = ranges::find_if(entries, [&](const PackedEntry& e) { return e.holds(key, copy); });
  if (at == entries.end()) throw Error(fmt::format("no packed parameter is called {}", key));
  return *at;
}

PackedArena make_packed_arena(const std::vector<Plan>& plans, const std::vector<Target>& targets) {
  PackedArena arena;
  const auto add = [&](const Plan& plan) {
    for (const Tensor& t : plan.program.tensors) {
      if (t.storage != Storage::packed) continue;
      PackedEntry e;
      e.key = plan.program.graph[t.parameter].name;
      e.packing = t.packing;
      e.transposed = t.transposed;
      e.element = t.element;
      if (ranges::any_of(arena.entries, [&](const PackedEntry& o) { return o.holds(e.key, t); })) continue;
      const bool panels = e.packing == Packing::panels;
      e.columns = t.shape.empty() ? 1 : t.shape[0].value();
      for (std::size_t d = 1; d < t.shape.size(); ++d) (panels ? e.depth : e.columns) *= t.shape[d].value();
      e.count = t.slots;
      if (!panels) e.reals = e.columns;
      for (const Target& target : targets) {  // the last panel of a matrix may be part empty
        if (!panels) break;
        const std::int64_t width = columns_of(target, e.columns, e.element) * target.lanes;
        const std::int64_t deep = by_tiles(e.element, target) ? panel_depth(e.element, e.depth) : e.depth;
        e.reals = std::max(e.reals, (e.columns + width - 1) / width * width * deep);
      }
      const std::int64_t together = values_in_real(e.element);
      e.reals = rounded((e.reals + together - 1) / together);
      e.offset = arena.reals;
      arena.reals += e.reals * e.count;
      arena.entries.push_back(std::move(e));
    }
  };
  for (const Plan& plan : plans)
    if (!differentiates(plan.program)) add(plan);
  arena.forward_reals = arena.reals;
  for (const Plan& plan : plans)
    if (differentiates(plan.program)) add(plan);
  return arena;
}

Arena make_arena(const KernelProgram& p) {
  // When each gradient is written, in running order; a repeated block's come as one.
  std::map<std::string, std::pair<int, int>> finished;  // key -> (time at the top level, time within)
  for (std::size_t top = 0; top < p.order[0].size(); ++top) {
    const Item& item = p.order[0][top];
    std::vector<Item> inside{item};
    if (item.region >= 0) inside = p.order[static_cast<std::size_t>(item.region)];
    for (std::size_t k = 0; k < inside.size(); ++k)
      for (const Step& s : p.kernels[static_cast<std::size_t>(inside[k].kernel)].steps)
        for (const Step::Store& store : s.stores) {
          const Tensor& t = p.tensors[static_cast<std::size_t>(store.to.tensor)];
          if (t.storage == Storage::gradient && t.parameter != graph::none)
            finished[p.graph[t.parameter].name] = {static_cast<int>(top), static_cast<int>(k)};
        }
  }
  std::vector<std::pair<std::pair<int, int>, ArenaEntry>> found;
  std::map<std::string, int> region_of;
  for (const graph::Node& n : p.graph.nodes) {
    if (n.op != graph::Op::parameter) continue;
    ArenaEntry e;
    e.key = n.name;
    e.shape = n.shape;
    e.init = n.init;
    e.decay = n.decay;
    e.count = p.graph.regions[static_cast<std::size_t>(n.region)].count;
    e.reals = 1;
    for (const Dim& d : n.shape) e.reals *= d.value();
    region_of[n.name] = n.region;
    found.push_back({finished.at(n.name), std::move(e)});
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
      layer += rounded(found[k].second.reals);
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
