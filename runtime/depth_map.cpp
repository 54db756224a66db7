#include "runtime/depth_map.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "runtime/error.hpp"

namespace tessera::runtime {
namespace {

/// Where a pixel of the new side lies between two of the old one.
struct Between {
  std::size_t first, second;
  float weight;  ///< of the second
};
std::vector<Between> between(std::int64_t from, std::int64_t to) {
  std::vector<Between> result;
  const double step = to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
  for (std::int64_t i = 0; i < to; ++i) {
    const double place = static_cast<double>(i) * step;
    const auto first = std::min(static_cast<std::int64_t>(place), from - 1);
    result.push_back({static_cast<std::size_t>(first), static_cast<std::size_t>(std::min(first + 1, from - 1)),
                      static_cast<float>(place - static_cast<double>(first))});
  }
  return result;
}

}  // namespace

std::pair<float, float> DepthMap::range() const {
  const auto [least, most] = std::ranges::minmax_element(depths);
  return {*least, *most};
}

DepthMap scaled(const DepthMap& map, std::int64_t height, std::int64_t width) {
  DepthMap result{height, width, {}};
  result.depths.reserve(static_cast<std::size_t>(size_product({height, width})));
  const std::vector<Between> across = between(map.width, width);
  const auto old_width = static_cast<std::size_t>(map.width);
  for (const Between& row : between(map.height, height)) {
    const float *const above = map.depths.data() + row.first * old_width, *const below = map.depths.data() +
                                                                                         row.second * old_width;
    for (const Between& at : across)
      result.depths.push_back(std::lerp(std::lerp(above[at.first], above[at.second], at.weight),
                                        std::lerp(below[at.first], below[at.second], at.weight), row.weight));
  }
  return result;
}

bool covers_pictures(const Preprocessing& input) { return input.crop == 1 && input.fit == Fit::squash; }

}  // namespace tessera::runtime
