// Composites taken apart.
#pragma once

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The same graph in primitives only:
///   softmax        exp(x - max x) / sum exp(x - max x)
///   layer_norm     (x - mean) * rsqrt(mean((x - mean)^2) + epsilon) * weight + bias: two passes, nothing cancels
///   log_softmax    x - max x - log sum exp(x - max x)
///   cross_entropy  mean over B of log sum exp(z - m) + m - z[label], m = max z
///   gather         one-hot rows times the table
///   dropout        x * factors; these are made from the input "random", integers [4]: seed and step, low words first
graph::Graph decompose(const graph::Graph& graph);

/// The graph as it stands in evaluation: every dropout answers its operand.
graph::Graph without_dropout(const graph::Graph& graph);

}  // namespace tessera::codegen
