// The VQGAN of tests/golden/vq/vqgan_small.
#pragma once

#include "models/vqgan.hpp"
#include "models/vqgan_training.hpp"

namespace tessera::test {

inline constexpr models::VqganSpec small_vqgan{.image = 16,
                                               .ch = 16,
                                               .mult = {1, 1, 2},
                                               .blocks = 1,
                                               .attention = {2},
                                               .z = 16,
                                               .dim = 8,
                                               .codes = 32,
                                               .groups = 8};

using SmallVqgan = models::VqganReconstruct<small_vqgan>;
using SmallVqganEncode = models::VqganEncode<small_vqgan>;
using SmallVqganDecode = models::VqganDecode<small_vqgan>;

/// How that of tests/golden/vq/vqgan_small is trained.
inline constexpr models::VqganTrainingSpec small_vqgan_training{.vqgan = small_vqgan,
                                                                .filters = 8,
                                                                .layers = 2,
                                                                .vgg = {.widths = {4, 8, 8, 12, 12}},
                                                                .disc_weight = 0.8,
                                                                .batch = 4};
using SmallVqganGenerator = models::VqganGenerator<small_vqgan_training>;
using SmallVqganDiscriminator = models::VqganDiscriminator<small_vqgan_training>;

}  // namespace tessera::test
