// What the backward pass computes again rather than keep.
#pragma once

#include <cstdint>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The primitive graph with a backward pass that computes again what is pointwise in values which it reads anyway: GELU
/// of what its gradient needs, a normalised value's scale and shift. Such values are then no longer kept: in backward
/// regions for every layer, outside of regions from before the loss. Parameters and constants count as there; what has
/// been dropped from is kept. So it goes for what is made of products of two of an image's values, where such a product
/// has more elements than `large` and than both factors together: attention's scores. Of the probabilities that a
/// softmax makes of them, the largest score and the sum of exponentials of each row are kept, so that they are the same
/// numbers again (Dao et al., FlashAttention, 2022, without its tiles). `large`: of the scores of a smaller image L2
/// holds a layer's.
graph::Graph recompute(const graph::Graph& graph, std::int64_t large = 1 << 16);

}  // namespace tessera::codegen
