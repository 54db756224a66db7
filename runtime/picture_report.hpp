// What reports of models that give pictures show: pictures as tiles, and how often each code of a codebook is used.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera::runtime {

/// A tile for each image of [count, channels, height, width] in [-1, 1]; below it the image of `below`, which is of the
/// same shape, unless there are none.
std::vector<std::string> picture_tiles(std::span<const float> images, const std::int64_t (&shape)[3],
                                       std::span<const float> below = {});

/// How many of all tokens are each code: a bar a code, from the one that is used most to the least, as an SVG.
std::string code_usage_svg(std::span<const std::int64_t> counts);

}  // namespace tessera::runtime
