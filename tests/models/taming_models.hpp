// The Gpt of tests/golden/vq/taming_small, and one of more positions.
#pragma once

#include "models/taming.hpp"
#include "tests/models/forward_only_models.hpp"

namespace tessera::models {

using GoldenGpt = Gpt<GptSpec{
    .codes = 32, .positions = 16, .layers = 2, .heads = 2, .width = 32, .classes = 10, .learning_rate = 1e-3}>;

/// Its positions are two blocks and a part of one, and the weights of its MLP are read once for all images of a batch.
using LongGpt = test::ForwardOnly<Gpt<GptSpec{.codes = 256, .positions = 150, .layers = 1, .heads = 1, .width = 128}>>;

}  // namespace tessera::models
