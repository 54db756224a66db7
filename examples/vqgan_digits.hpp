// vqgan_digits: digits of 28 x 28 as 7 x 7 tokens of 64 codes, and how that is trained. The sizes are those of
// golden/vq/digits_trained.
#pragma once

#include "models/vqgan_training.hpp"

namespace tessera::models {

inline constexpr VqganSpec vqgan_digits{.image = 28,
                                        .channels = 1,
                                        .ch = 16,
                                        .mult = {1, 2, 2},
                                        .blocks = 1,
                                        .attention = {2},
                                        .z = 16,
                                        .dim = 16,
                                        .codes = 64,
                                        .groups = 8};

inline constexpr VqganTrainingSpec vqgan_digits_training{
    .vqgan = vqgan_digits,
    .filters = 16,
    .layers = 2,
    .perceptual_weight = 0,
    .disc_weight = 0.2,
    .generator = {.learning_rate = 1e-3, .beta1 = 0.5, .beta2 = 0.9},
    .discriminator = {.learning_rate = 5e-4, .beta1 = 0.5, .beta2 = 0.9}};

using VqganDigitsGenerator = VqganGenerator<vqgan_digits_training>;
using VqganDigitsDiscriminator = VqganDiscriminator<vqgan_digits_training>;
using VqganDigitsEncode = VqganEncode<vqgan_digits>;
using VqganDigitsDecode = VqganDecode<vqgan_digits>;

}  // namespace tessera::models
