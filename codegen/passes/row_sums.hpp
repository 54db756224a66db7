// Row sums of a softmax's gradient, of what the probabilities weighed.
#pragma once

#include <cstdint>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The primitive graph in which a sum over the keys of P dP, with dP = dO V^T and O = P V in the graph, is a sum over
/// the channels of dO O: the gradient of attention's softmax then needs no sum over a row of scores, so that its rows
/// can be computed by blocks of keys (Dao, FlashAttention-2, 2023, section 3.1). So where an image's P has `large`
/// elements or more and its O fewer than P: with fewer nothing was gained.
graph::Graph take_row_sums_of_outputs(const graph::Graph& graph, std::int64_t large = 1 << 17);

}  // namespace tessera::codegen
