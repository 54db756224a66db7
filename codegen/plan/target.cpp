#include "codegen/plan/target.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <range/v3/algorithm/count.hpp>
#include <range/v3/view/transform.hpp>

#include "codegen/error.hpp"

namespace tessera::codegen {

std::vector<Target> targets_of(Precision precision) {
  std::vector<Target> targets;
  for (const Isa& isa : isas)
    if (isa.by_default && isa.precisions.contains(precision)) targets.emplace_back(isa);
  return targets;
}

std::vector<Target> targets_named(const std::vector<std::string>& names, Precision precision) {
  for (const std::string& name : names) {
    const Isa* const isa = find_isa(name);
    if (!isa)
      throw Error(fmt::format("there is no instruction set {}: choose from {}", name,
                              fmt::join(isas | ranges::views::transform(&Isa::name), ", ")));
    if (ranges::count(names, name) > 1) throw Error(fmt::format("--isa names {} twice", name));
    if (!isa->precisions.contains(precision))
      throw Error(fmt::format(
          "--isa {} needs --precision {}", name,
          fmt::join(isa->precisions | ranges::views::transform([](Precision p) { return name_of(p); }), " or ")));
  }
  std::vector<Target> targets;
  for (const Isa& isa : isas)
    if (ranges::count(names, isa.name)) targets.emplace_back(isa);
  if (targets.empty() || targets.front().name != isas[0].name)
    throw Error(fmt::format("--isa must hold {}, which every machine can run", isas[0].name));
  return targets;
}

}  // namespace tessera::codegen
