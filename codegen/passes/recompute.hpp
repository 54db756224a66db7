// What the backward pass computes again rather than keep.
#pragma once

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The primitive graph with backward regions that compute again what is pointwise in values which the backward pass
/// reads anyway: GELU of what its gradient needs, a normalised value's scale and shift. Such values are then no longer
/// kept for every layer. Parameters and constants count as there; what has been dropped from is kept.
graph::Graph recompute(const graph::Graph& graph);

}  // namespace tessera::codegen
