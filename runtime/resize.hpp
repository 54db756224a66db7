// Pictures of another size, by cubic or linear interpolation.
#pragma once

#include <cstdint>

#include "runtime/image.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Scales to height x width: each new pixel is a sum of the old ones around its place, by the cubic kernel of Keys
/// (1981) with a = -0.5 or by the triangle of linear interpolation, widened by the factor of the reduction where the
/// picture becomes smaller (antialiasing). First across, rounded to bytes, then down; sums in fixed point of 2^-22:
/// Pillow's bytes exactly. Pillow equivalent: image.resize((width, height), PIL.Image.BICUBIC) or BILINEAR of Pillow
/// 11; version 13 goes down first where a picture becomes lower and wider. Source: Pillow's libImaging/Resample.c.
Image resized(const Image& image, std::int64_t height, std::int64_t width,
              Interpolation interpolation = Interpolation::bicubic);

}  // namespace tessera::runtime
