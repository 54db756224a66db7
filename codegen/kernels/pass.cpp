#include "codegen/kernels/pass.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <range/v3/algorithm/contains.hpp>

#include "codegen/error.hpp"

namespace tessera::codegen {

void run_passes(KernelProgram& program, const std::vector<Pass>& passes, const PassOptions& options) {
  for (const Pass& pass : passes) {
    if (options.disabled.contains(pass.name) || !pass.applies(program)) continue;
    pass.run(program);
    try {
      verify(program);
    } catch (const Error& error) {
      throw Error(fmt::format("behind the pass {}, {}", pass.name, error.what()));
    }
    if (options.after) options.after(pass, program);
  }
}

void check_disabled(const std::set<std::string, std::less<>>& disabled, const std::vector<std::vector<Pass>>& lists) {
  std::vector<std::string_view> known;
  for (const std::vector<Pass>& list : lists)
    for (const Pass& pass : list)
      if (!pass.required && !ranges::contains(known, pass.name)) known.push_back(pass.name);
  for (const std::string& name : disabled) {
    if (ranges::contains(known, name)) continue;
    for (const std::vector<Pass>& list : lists)
      if (ranges::contains(list, name, &Pass::name))
        throw Error(fmt::format("the pass {} cannot be left out: what comes behind it relies on it", name));
    throw Error(fmt::format("there is no pass {}: choose from {}", name, fmt::join(known, ", ")));
  }
}

}  // namespace tessera::codegen
