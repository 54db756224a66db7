#include "runtime/resize.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tessera::runtime {
namespace {

constexpr int precision = 32 - 8 - 2;  // bits behind the point: a sum of bytes and an overshoot still fit 32 bits

/// One new pixel: the old ones from `first` on, each with its factor.
struct Window {
  std::int64_t first = 0;
  std::vector<std::int32_t> factors;
};

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double bilinear(double x) { return std::max(1 - std::abs(x), 0.0); }

std::vector<Window> windows(std::int64_t from, std::int64_t to, Interpolation interpolation) {
  const bool cubic = interpolation == Interpolation::bicubic;
  std::vector<Window> result(static_cast<std::size_t>(to));
  const double scale = static_cast<double>(from) / static_cast<double>(to), widening = std::max(scale, 1.0);
  const double reach = (cubic ? 2 : 1) * widening;
  std::vector<double> weights;
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const std::int64_t first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - reach + 0.5), 0);
    const std::int64_t last = std::min(static_cast<std::int64_t>(centre + reach + 0.5), from);
    weights.clear();
    double sum = 0;
    for (std::int64_t k = first; k < last; ++k) {
      const double x = (static_cast<double>(k) - centre + 0.5) / widening;
      weights.push_back(cubic ? bicubic(x) : bilinear(x));
      sum += weights.back();
    }
    Window& window = result[static_cast<std::size_t>(i)];
    window.first = first;
    for (const double weight : weights) {
      const double factor = weight / sum * (1 << precision);
      window.factors.push_back(static_cast<std::int32_t>(factor < 0 ? factor - 0.5 : factor + 0.5));
    }
  }
  return result;
}

/// The window's sum over pixels that lie `stride` apart.
std::uint8_t pixel(const Window& window, const std::uint8_t* line, std::int64_t stride) {
  std::int32_t sum = 1 << (precision - 1);
  const std::uint8_t* from = line + window.first * stride;
  for (const std::int32_t factor : window.factors) {
    sum += *from * factor;
    from += stride;
  }
  return static_cast<std::uint8_t>(std::clamp(sum >> precision, 0, 255));
}

}  // namespace

Image resized(const Image& image, std::int64_t height, std::int64_t width, Interpolation interpolation) {
  Image wide = image;
  if (width != image.width) {
    wide = {image.channels, image.height, width,
            Bytes(static_cast<std::size_t>(image.channels * image.height * width))};
    const std::vector<Window> columns = windows(image.width, width, interpolation);
    std::uint8_t* to = wide.pixels.data();
    for (std::int64_t row = 0; row < image.channels * image.height; ++row)
      for (const Window& column : columns) *to++ = pixel(column, image.pixels.data() + row * image.width, 1);
  }
  if (height == image.height) return wide;
  Image result{image.channels, height, width, Bytes(static_cast<std::size_t>(image.channels * height * width))};
  const std::vector<Window> rows = windows(image.height, height, interpolation);
  std::uint8_t* to = result.pixels.data();
  for (std::int64_t c = 0; c < image.channels; ++c)
    for (const Window& row : rows)
      for (std::int64_t x = 0; x < width; ++x)
        *to++ = pixel(row, wide.pixels.data() + c * image.height * width + x, width);
  return result;
}

}  // namespace tessera::runtime
