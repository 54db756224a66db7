// A part of a graph that stands alone.
#pragma once

#include <string>
#include <vector>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// Only the outputs of these names, in the graph's order, and what they depend on. Throws Error for a name that no
/// output has.
graph::Graph subgraph(const graph::Graph& graph, const std::vector<std::string>& outputs);

}  // namespace tessera::codegen
