// The graph's invariants, checked before anything reads it.
#pragma once

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// Throws Error, one sentence that names the node, its op and its path, when the graph breaks a rule of
/// dsl/graph/graph.hpp: operands exist and stand earlier; a node reads only its own region, the top level before its
/// region, and its region's mirror; types and shapes follow from the operands; letters, atoms, axes and offsets are
/// consistent; regions are contiguous runs whose carries and yields agree; parameter and input names are unique;
/// outputs exist.
void verify(const graph::Graph& graph);

}  // namespace tessera::codegen
