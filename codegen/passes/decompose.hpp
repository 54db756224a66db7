// Composites taken apart.
#pragma once

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The same graph in primitives only:
///   softmax        exp(x - max x) / sum exp(x - max x)
///   layer_norm     (x - mean) * rsqrt(mean((x - mean)^2) + epsilon) * weight + bias: two passes, nothing cancels
///   cross_entropy  mean over B of log sum exp(z - m) + m - z[label], m = max z
graph::Graph decompose(const graph::Graph& graph);

}  // namespace tessera::codegen
