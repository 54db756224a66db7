// The VQGANs of tests/golden/vq: vqgan_small, and vqgan_paper, which is of other sizes and kinds.
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

inline constexpr models::VqganTrainingSpec paper_vqgan_training{.vqgan = {.image = {12, 8},
                                                                          .channels = 1,
                                                                          .ch = 4,
                                                                          .mult = {1, 2},
                                                                          .blocks = 1,
                                                                          .attention = {0},
                                                                          .z = 4,
                                                                          .dim = 3,
                                                                          .codes = 16,
                                                                          .groups = 2,
                                                                          .legacy = false},
                                                                .filters = 4,
                                                                .layers = 1,
                                                                .norm = models::DiscriminatorSpec::act,
                                                                .gan = models::VqganTrainingSpec::vanilla,
                                                                .perceptual_weight = 0,
                                                                .disc_weight = 0.8,
                                                                .codebook_weight = 0.5,
                                                                .batch = 4};
using PaperVqganGenerator = models::VqganGenerator<paper_vqgan_training>;
using PaperVqganDiscriminator = models::VqganDiscriminator<paper_vqgan_training>;

}  // namespace tessera::test
