#include "runtime/augment.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tessera::runtime {
namespace {

/// The pixels of one image and what is done to them.
class Canvas {
 public:
  Canvas(std::span<const std::uint8_t> image, std::int64_t channels, std::int64_t height, std::int64_t width)
      : pixels_(image.begin(), image.end()), channels_(channels), height_(height), width_(width) {}

  Bytes pixels() && { return std::move(pixels_); }

  /// Moves the image by whole pixels; black comes in.
  void shift(std::int64_t down, std::int64_t right) {
    sample(
        [&](double y, double x) { return std::pair(y - static_cast<double>(down), x - static_cast<double>(right)); });
  }

  void flip() {
    for (std::int64_t row = 0; row < channels_ * height_; ++row)
      std::reverse(pixels_.begin() + row * width_, pixels_.begin() + (row + 1) * width_);
  }

  /// One operation of RandAugment, with torchvision's ranges.
  void operate(int magnitude, Random& random) {
    const double part = magnitude / 30.0, sign = random.below(2) ? 1 : -1;
    const double middle_y = static_cast<double>(height_ - 1) / 2, middle_x = static_cast<double>(width_ - 1) / 2;
    switch (random.below(11)) {
      case 0:
        break;  // as it is
      case 1: {
        const double lean = sign * 0.3 * part;
        sample([&](double y, double x) { return std::pair(y, x + lean * (y - middle_y)); });
        break;
      }
      case 2: {
        const double lean = sign * 0.3 * part;
        sample([&](double y, double x) { return std::pair(y + lean * (x - middle_x), x); });
        break;
      }
      case 3:
        shift(0, std::llround(sign * part * 150.0 / 331.0 * static_cast<double>(width_)));
        break;
      case 4:
        shift(std::llround(sign * part * 150.0 / 331.0 * static_cast<double>(height_)), 0);
        break;
      case 5: {
        const double angle = sign * part * std::numbers::pi / 6, c = std::cos(angle), s = std::sin(angle);
        sample([&](double y, double x) {
          const double v = y - middle_y, u = x - middle_x;
          return std::pair(middle_y + c * v - s * u, middle_x + s * v + c * u);
        });
        break;
      }
      case 6:
        blend(1 + sign * 0.9 * part, 0);
        break;
      case 7:
        blend(1 + sign * 0.9 * part, mean());
        break;
      case 8: {
        const int bits = 8 - static_cast<int>(std::lround(magnitude / 7.5));
        const auto mask = static_cast<std::uint8_t>(0xff << (8 - bits));
        for (std::uint8_t& p : pixels_) p &= mask;
        break;
      }
      case 9: {
        const double threshold = 255 - 255 * part;
        for (std::uint8_t& p : pixels_)
          if (p >= threshold) p = static_cast<std::uint8_t>(255 - p);
        break;
      }
      default:
        stretch();
    }
  }

  /// A box of 2 to 33 % of the area and a side ratio from 0.3 to 3.3, overwritten with noise.
  void erase(Random& random) {
    const double area = random.uniform(0.02, 0.33) * static_cast<double>(height_ * width_);
    const double ratio = std::exp(random.uniform(std::log(0.3), std::log(1 / 0.3)));
    const auto rows = std::clamp<std::int64_t>(std::llround(std::sqrt(area * ratio)), 1, height_);
    const auto columns = std::clamp<std::int64_t>(std::llround(std::sqrt(area / ratio)), 1, width_);
    const std::int64_t top = random.below(static_cast<std::uint32_t>(height_ - rows + 1));
    const std::int64_t left = random.below(static_cast<std::uint32_t>(width_ - columns + 1));
    for (std::int64_t c = 0; c < channels_; ++c)
      for (std::int64_t y = top; y < top + rows; ++y)
        for (std::int64_t x = left; x < left + columns; ++x) at(c, y, x) = static_cast<std::uint8_t>(random.below(256));
  }

 private:
  std::uint8_t& at(std::int64_t c, std::int64_t y, std::int64_t x) {
    return pixels_[static_cast<std::size_t>((c * height_ + y) * width_ + x)];
  }

  /// Each pixel becomes the nearest one to where `from` says it comes from; black from outside.
  void sample(const auto& from) {
    const Bytes before = pixels_;
    for (std::int64_t y = 0; y < height_; ++y)
      for (std::int64_t x = 0; x < width_; ++x) {
        const auto [v, u] = from(static_cast<double>(y), static_cast<double>(x));
        const std::int64_t row = std::llround(v), column = std::llround(u);
        const bool inside = row >= 0 && row < height_ && column >= 0 && column < width_;
        for (std::int64_t c = 0; c < channels_; ++c)
          at(c, y, x) = inside ? before[static_cast<std::size_t>((c * height_ + row) * width_ + column)] : 0;
      }
  }

  /// grey + factor * (pixel - grey)
  void blend(double factor, double grey) {
    for (std::uint8_t& p : pixels_)
      p = static_cast<std::uint8_t>(std::clamp(std::lround(grey + factor * (p - grey)), 0L, 255L));
  }
  double mean() const {
    double sum = 0;
    for (const std::uint8_t p : pixels_) sum += p;
    return sum / static_cast<double>(pixels_.size());
  }

  /// The darkest pixel of each channel becomes 0, the lightest 255.
  void stretch() {
    const std::int64_t size = height_ * width_;
    for (std::int64_t c = 0; c < channels_; ++c) {
      const auto first = pixels_.begin() + c * size, last = first + size;
      const auto [dark, light] = std::minmax_element(first, last);
      const int low = *dark, range = *light - low;
      if (range == 0) continue;
      std::for_each(first, last,
                    [&](std::uint8_t& p) { p = static_cast<std::uint8_t>(std::lround(255.0 * (p - low) / range)); });
    }
  }

  Bytes pixels_;
  std::int64_t channels_, height_, width_;
};

}  // namespace

Bytes augmented(std::span<const std::uint8_t> image, std::int64_t channels, std::int64_t height, std::int64_t width,
                const Augmentation& how, Random& random) {
  Canvas canvas(image, channels, height, width);
  if (how.crop > 0) {
    const auto places = static_cast<std::uint32_t>(2 * how.crop + 1);
    const std::int64_t down = random.below(places), right = random.below(places);
    canvas.shift(down - how.crop, right - how.crop);
  }
  if (how.flip && random.below(2)) canvas.flip();
  for (int i = 0; i < how.operations; ++i) canvas.operate(how.magnitude, random);
  if (how.erase > 0 && random.uniform() < how.erase) canvas.erase(random);
  return std::move(canvas).pixels();
}

}  // namespace tessera::runtime
