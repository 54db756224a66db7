// A VQGAN of 28x28 digits and the transformer over its 7x7 tokens: what taming_digits draws with. The sizes are those
// of golden/vq/digits_trained.
#pragma once

#include "models/taming.hpp"
#include "models/vqgan.hpp"

namespace tessera::models {

inline constexpr VqganSpec digit_tokens{.image = 28,
                                        .channels = 1,
                                        .ch = 16,
                                        .mult = {1, 2, 2},
                                        .blocks = 1,
                                        .attention = {2},
                                        .z = 16,
                                        .dim = 16,
                                        .codes = 64,
                                        .groups = 8};

using DigitsEncode = VqganEncode<digit_tokens>;
using DigitsDecode = VqganDecode<digit_tokens>;
using DigitsGpt = Gpt<GptSpec{
    .codes = 64, .positions = 49, .layers = 3, .heads = 4, .width = 64, .classes = 10, .learning_rate = 2e-3}>;

}  // namespace tessera::models
