#include "codegen/passes/pass.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find.hpp>

namespace tessera::codegen {

void check_options(const PassOptions& options, const std::vector<PassList>& lists) {
  std::vector<std::string_view> known;  // that can be left out
  const auto row_of = [&](const std::string& name) -> const PassList::Row& {
    for (const PassList& list : lists)
      if (const auto at = ranges::find(list.rows, name, &PassList::Row::name); at != list.rows.end()) return *at;
    throw Error(fmt::format("there is no pass {}: choose from {}", name, fmt::join(known, ", ")));
  };
  for (const PassList& list : lists)
    for (const PassList::Row& pass : list.rows)
      if (!pass.required && !ranges::contains(known, pass.name)) known.push_back(pass.name);
  for (const std::string& name : options.disabled)
    if (row_of(name).required)
      throw Error(fmt::format("the pass {} cannot be left out: what comes behind it relies on it", name));
  for (const auto& [name, value] : options.values)
    if (row_of(name).takes.empty()) throw Error(fmt::format("the pass {} takes no option, such as {}", name, value));
}

}  // namespace tessera::codegen
