// Pictures as models of images in [-1, 1] read and give them, and several of them as one PNG.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/image.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// A pixel's byte as the number in [-1, 1] that it stands for: byte / 127.5 - 1.
std::vector<float> numbers_of_pixels(std::span<const std::uint8_t> pixels);

/// Images [count, channels, height, width], clamped to [-1, 1], side by side in rows of `columns`, with a grey border
/// of so many pixels between them: a PNG file. Throws an Error where one of them is not a number.
Bytes picture_sheet(std::span<const float> images, const std::int64_t (&shape)[3], std::int64_t columns,
                    std::int64_t border);

}  // namespace tessera::runtime
