// A classifier without its head.
#pragma once

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The declaration of NAME_embedding: its outputs [B, D] are what the last linear map reads, its parameters the others
/// under the same keys, and it has no loss. Throws Error where the outputs are not a linear map of [B, D], with or
/// without a bias and a softmax.
graph::Graph headless(const graph::Graph& declared);

}  // namespace tessera::codegen
