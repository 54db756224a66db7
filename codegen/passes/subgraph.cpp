#include "codegen/passes/subgraph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <range/v3/algorithm/contains.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/transform.hpp>
#include <utility>

#include "codegen/error.hpp"
#include "codegen/passes/rewrite.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Output;

Graph subgraph(const Graph& graph, const std::vector<std::string>& outputs) {
  auto names = graph.outputs | ranges::views::transform(&Output::name) | ranges::to<std::vector<std::string>>();
  for (const std::string& name : outputs)
    if (!ranges::contains(names, name))
      throw Error(fmt::format("the model {} has no output {}: it has {}", graph.name, name, fmt::join(names, ", ")));
  Graph part = graph;
  std::erase_if(part.outputs, [&](const Output& o) { return !ranges::contains(outputs, o.name); });
  return remove_dead(std::move(part));
}

}  // namespace tessera::codegen
