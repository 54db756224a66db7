// What nobody reads is not computed: a class token's head needs one token of the last layer.
#pragma once

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// An equivalent graph in which a slice that alone reads a value is taken of what the value is made of instead, as far
/// up as that goes. Where at most half of what a repeated block yields is read, its last layer leaves the region for
/// the top level, its parameters under their layer's number ("blocks.11.norm1.weight"), and is narrowed as well: of its
/// other tokens only keys and values remain, and their gradients. Exact, but that dropouts of that layer draw other
/// factors. The graph must be as declared: composites whole.
graph::Graph eliminate_dead_slices(const graph::Graph& graph);

}  // namespace tessera::codegen
