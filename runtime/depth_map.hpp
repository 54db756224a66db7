// How far away pixels are, at another size than the model's.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/model.hpp"

namespace tessera::runtime {

/// Depths [height, width].
struct DepthMap {
  std::int64_t height = 0, width = 0;
  std::vector<float> depths;

  std::pair<float, float> range() const;  ///< the smallest and the largest
};

/// At another size: linear interpolation down and across; the pixels at the corners stay what they are.
/// PyTorch equivalent: torch.nn.functional.interpolate(map, (height, width), mode="bilinear", align_corners=True).
DepthMap scaled(const DepthMap& map, std::int64_t height, std::int64_t width);

/// Whether a model reads the whole picture and nothing else: it is neither cut nor padded.
bool covers_pictures(const Preprocessing& input);

}  // namespace tessera::runtime
