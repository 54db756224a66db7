// A model of sequences, token by token.
#pragma once

#include <optional>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The graph of `step`: of one token [B, 1] for each image and its position, integers [1], what the model gives there,
/// "outputs" [B, 1, ...]. What stands for the position alone (learned positions, masks) is the row of that number. Keys
/// and values, which later tokens read again, become caches (Op::cache) with a row for each position; keys lie with
/// positions innermost, since they are the columns of the scores.
///
/// nullopt where the model is none of sequences: it reads no tokens [B, T], does not give a row for each, mixes
/// positions otherwise than by a softmax over scores behind a mask that hides all later positions, or changes the
/// order or number of positions.
std::optional<graph::Graph> stepped(const graph::Graph& declared);

}  // namespace tessera::codegen
