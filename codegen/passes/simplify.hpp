// Algebra: the same values from fewer nodes.
#pragma once

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// An equivalent graph in which nothing is dead, nothing is computed twice in a region (or again in a region that
/// mirrors it, unless recomputing is free), constants are folded, views of views are one view, a view of a concat is a
/// view of the part that it lies in, and pointwise ops are moved into the parts of a concat that nobody else reads.
/// Applied until nothing changes. Values may differ by the rounding of folded constants; nodes are renumbered.
graph::Graph simplify(const graph::Graph& graph);

}  // namespace tessera::codegen
