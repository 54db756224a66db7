// What training images go through by chance, so that no two epochs see the same ones.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/dataset.hpp"
#include "runtime/model.hpp"
#include "runtime/philox.hpp"

namespace tessera::runtime {

/// The augmented pixels of one image [channels, height, width], in this order: crop, flip, RandAugment, erasing. A
/// function of the image and of what `random` draws.
Bytes augmented(std::span<const std::uint8_t> image, std::int64_t channels, std::int64_t height, std::int64_t width,
                const Augmentation& how, Random& random);

}  // namespace tessera::runtime
