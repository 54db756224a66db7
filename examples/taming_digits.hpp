// The transformer over the tokens of vqgan_digits, 7 x 7 of 64 codes: what taming_digits draws with.
#pragma once

#include "models/taming.hpp"

namespace tessera::models {

using DigitsGpt = Gpt<GptSpec{
    .codes = 64, .positions = 49, .layers = 3, .heads = 4, .width = 64, .classes = 10, .learning_rate = 2e-3}>;

}  // namespace tessera::models
