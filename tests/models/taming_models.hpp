// The Gpt of tests/golden/vq/taming_small.
#pragma once

#include "models/taming.hpp"

namespace tessera::models {

using GoldenGpt = Gpt<GptSpec{
    .codes = 32, .positions = 16, .layers = 2, .heads = 2, .width = 32, .classes = 10, .learning_rate = 1e-3}>;

}  // namespace tessera::models
