#include "runtime/picture_sheet.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/arena.hpp"
#include "runtime/error.hpp"

namespace tessera::runtime {

namespace {

std::uint8_t pixel_of(float number) {
  return static_cast<std::uint8_t>(std::lround((std::clamp(number, -1.0F, 1.0F) + 1) * 127.5F));
}

}  // namespace

std::vector<float> numbers_of_pixels(std::span<const std::uint8_t> pixels) {
  std::vector<float> numbers;
  numbers.reserve(pixels.size());
  for (const std::uint8_t pixel : pixels) numbers.push_back(static_cast<float>(pixel) / 127.5F - 1);
  return numbers;
}

Bytes picture_sheet(std::span<const float> images, const std::int64_t (&shape)[3], std::int64_t columns,
                    std::int64_t border) {
  if (!std::ranges::all_of(images, [](float number) { return std::isfinite(number); }))
    fail("the pixels are not numbers: the parameters that gave them cannot be used");
  const auto [channels, height, width] = shape;
  const std::int64_t count = static_cast<std::int64_t>(images.size()) / size_product({channels, height, width});
  columns = std::min(columns, count);
  const std::int64_t rows = (count + columns - 1) / columns;
  const std::int64_t high = rows * (height + border) - border, wide = columns * (width + border) - border;
  Bytes sheet(static_cast<std::size_t>(size_product({channels, high, wide})), 128);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x) {
          const std::int64_t top = i / columns * (height + border) + y, left = i % columns * (width + border) + x;
          sheet[static_cast<std::size_t>((c * high + top) * wide + left)] =
              pixel_of(images[static_cast<std::size_t>(((i * channels + c) * height + y) * width + x)]);
        }
  return encode_png(sheet, channels, high, wide);
}

}  // namespace tessera::runtime
