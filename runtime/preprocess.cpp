#include "runtime/preprocess.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/error.hpp"
#include "runtime/resize.hpp"

namespace tessera::runtime {
namespace {

constexpr std::int64_t most_pixels = std::int64_t{1} << 27;  // of a scaled picture

Image middle(const Image& image, std::int64_t height, std::int64_t width) {
  // An odd pixel too many: half of it is rounded to the even number, as torchvision's CenterCrop does.
  const auto first = [](std::int64_t whole, std::int64_t part) {
    return std::lrint(static_cast<double>(whole - part) / 2);
  };
  const std::int64_t top = first(image.height, height), left = first(image.width, width);
  Image result{image.channels, height, width, {}};
  result.pixels.reserve(static_cast<std::size_t>(image.channels * height * width));
  for (std::int64_t c = 0; c < image.channels; ++c)
    for (std::int64_t y = top; y < top + height; ++y) {
      const auto row = image.pixels.begin() + (c * image.height + y) * image.width + left;
      result.pixels.insert(result.pixels.end(), row, row + width);
    }
  return result;
}

/// Scaled until it just fits in, and filled up below it or to the right.
Image padded(const Image& image, const Preprocessing& input, std::int64_t height, std::int64_t width) {
  const auto side = [](std::int64_t from, std::int64_t scaled, std::int64_t of) {
    const double share = static_cast<double>(scaled) / static_cast<double>(of);
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(from) * share + 0.5));
  };
  std::int64_t rows = height, columns = width;
  if (image.height * width >= image.width * height)
    columns = std::min(width, side(image.width, height, image.height));
  else
    rows = std::min(height, side(image.height, width, image.width));
  const Image scaled = resized(image, rows, columns, input.interpolation);
  Image result{image.channels, height, width, {}, rows, columns};
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const double mean = std::clamp(input.mean.at(static_cast<std::size_t>(c)), 0.0, 1.0);
    const auto fill = static_cast<std::uint8_t>(std::lrint(255 * mean));
    for (std::int64_t y = 0; y < height; ++y) {
      if (y < rows) {
        const auto row = scaled.pixels.begin() + (c * rows + y) * columns;
        result.pixels.insert(result.pixels.end(), row, row + columns);
      }
      result.pixels.insert(result.pixels.end(), static_cast<std::size_t>(y < rows ? width - columns : width), fill);
    }
  }
  return result;
}

}  // namespace

Image prepared(const Image& image, const Preprocessing& input, std::int64_t height, std::int64_t width) {
  if (input.crop == 0) return fit(image, height, width);
  if (input.fit == Fit::pad) return padded(image, input, height, width);
  // What a share like 248 / 256 loses by being a double must not cost a pixel.
  const auto larger = [&](std::int64_t side) {
    return static_cast<std::int64_t>(static_cast<double>(side) / input.crop + 1e-9);
  };
  std::int64_t rows = larger(height), columns = larger(width);
  if (input.fit == Fit::squash) return middle(resized(image, rows, columns, input.interpolation), height, width);
  // The side that is not given: torchvision's Resize, of a square, rounds it down, timm's ResizeKeepRatio to the
  // nearest.
  const auto longer = [square = rows == columns](std::int64_t side, std::int64_t from, std::int64_t to) {
    if (square) return to * side / from;
    return std::int64_t{std::lrint(static_cast<double>(side) / (static_cast<double>(from) / static_cast<double>(to)))};
  };
  if (rows * image.width >= columns * image.height)
    columns = longer(image.width, image.height, rows);
  else
    rows = longer(image.height, image.width, columns);
  if (rows * columns > most_pixels)
    fail("a picture of ", image.width, "x", image.height, " is too narrow to be cropped: scaled, it would have ",
         columns, "x", rows, " pixels");
  return middle(resized(image, rows, columns, input.interpolation), height, width);
}

void normalize(std::span<const std::uint8_t> pixels, std::int64_t channels, const Preprocessing& input, float* images) {
  const std::size_t size = pixels.size() / static_cast<std::size_t>(channels);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    std::array<float, 256> value;
    for (std::size_t i = 0; i < value.size(); ++i)
      value[i] = static_cast<float>((static_cast<double>(i) / 255 - input.mean.at(c)) / input.deviation.at(c));
    for (std::size_t i = c * size; i < (c + 1) * size; ++i) images[i] = value[pixels[i]];
  }
}

void normalize(const Image& image, const Preprocessing& input, float* values) {
  normalize(image.pixels, image.channels, input, values);
  if (!image.rows) return;
  for (std::int64_t c = 0; c < image.channels; ++c)
    for (std::int64_t y = 0; y < image.height; ++y) {
      float* const row = values + (c * image.height + y) * image.width;
      std::fill(row + (y < image.rows ? image.columns : 0), row + image.width, 0.0f);
    }
}

}  // namespace tessera::runtime
