// How a picture of any size becomes what a model reads.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/image.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// The picture at height x width, as bytes still. With input.crop it is scaled (resized) until it just covers
/// height / crop x width / crop, rounded down (Fit::squash: is as large as that), and the middle is cut out of it;
/// without, it is fitted in as a whole (fit). timm equivalent: create_transform(input_size, crop_pct=crop,
/// interpolation=input.interpolation, crop_mode="squash" or "center"), up to ToTensor. Fit::pad: it is scaled until it
/// just fits in, sides rounded to the nearest, and filled up with the byte next to the mean: Segment Anything's
/// ResizeLongestSide.
Image prepared(const Image& image, const Preprocessing& input, std::int64_t height, std::int64_t width);

/// images[i] = (pixel / 255 - mean) / deviation of its channel, of pixels [channels, ...]: what a model reads.
void normalize(std::span<const std::uint8_t> pixels, std::int64_t channels, const Preprocessing& input, float* images);
/// The same of a picture, with 0 where it is padded.
void normalize(const Image& image, const Preprocessing& input, float* values);

}  // namespace tessera::runtime
