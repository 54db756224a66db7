#include "runtime/image.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tessera::runtime {
namespace {

/// How much of each old pixel a new one covers, along one direction.
struct Cover {
  std::int64_t first = 0;
  std::vector<double> part;  ///< sums to 1
};

std::vector<Cover> covers(std::int64_t from, std::int64_t to) {
  std::vector<Cover> result(static_cast<std::size_t>(to));
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  for (std::int64_t i = 0; i < to; ++i) {
    const double begin = static_cast<double>(i) * ratio, end = begin + ratio;
    Cover& cover = result[static_cast<std::size_t>(i)];
    cover.first = std::min(static_cast<std::int64_t>(begin), from - 1);
    for (std::int64_t k = cover.first; k < from && static_cast<double>(k) < end; ++k) {
      const double overlap = std::min(end, static_cast<double>(k + 1)) - std::max(begin, static_cast<double>(k));
      cover.part.push_back(std::max(overlap, 0.0) / ratio);
    }
  }
  return result;
}

/// The mean of the outermost pixels of one channel.
std::uint8_t border(const std::uint8_t* pixels, std::int64_t height, std::int64_t width) {
  std::int64_t sum = 0, count = 0;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; x += y == 0 || y == height - 1 ? 1 : std::max<std::int64_t>(width - 1, 1)) {
      sum += pixels[y * width + x];
      ++count;
    }
  return static_cast<std::uint8_t>(sum / count);
}

}  // namespace

Image image_of_rgb(const std::uint8_t* rgb, std::int64_t width, std::int64_t height, std::int64_t stride,
                   std::int64_t channels) {
  Image image{channels, height, width, Bytes(static_cast<std::size_t>(channels * height * width))};
  std::uint8_t* to = image.pixels.data();
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t y = 0; y < height; ++y)
      for (const std::uint8_t *pixel = rgb + y * stride, *end = pixel + 3 * width; pixel != end; pixel += 3)
        *to++ = static_cast<std::uint8_t>(channels == 1 ? luma(pixel) : pixel[c]);
  return image;
}

Image fit(const Image& image, std::int64_t height, std::int64_t width) {
  if (image.height == height && image.width == width) return image;
  const double scale = std::min(static_cast<double>(height) / static_cast<double>(image.height),
                                static_cast<double>(width) / static_cast<double>(image.width));
  const auto scaled = [&](std::int64_t size, std::int64_t most) {
    return std::clamp<std::int64_t>(std::llround(static_cast<double>(size) * scale), 1, most);
  };
  const std::int64_t inner_height = scaled(image.height, height), inner_width = scaled(image.width, width);
  const std::int64_t top = (height - inner_height) / 2, left = (width - inner_width) / 2;
  const std::vector<Cover> rows = covers(image.height, inner_height), columns = covers(image.width, inner_width);
  Image result{image.channels, height, width, Bytes(static_cast<std::size_t>(image.channels * height * width))};
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const std::uint8_t* from = image.pixels.data() + c * image.height * image.width;
    std::uint8_t* to = result.pixels.data() + c * height * width;
    std::fill(to, to + height * width, border(from, image.height, image.width));
    for (std::int64_t y = 0; y < inner_height; ++y)
      for (std::int64_t x = 0; x < inner_width; ++x) {
        const Cover &row = rows[static_cast<std::size_t>(y)], &column = columns[static_cast<std::size_t>(x)];
        double sum = 0;
        for (std::size_t i = 0; i < row.part.size(); ++i)
          for (std::size_t k = 0; k < column.part.size(); ++k)
            sum += row.part[i] * column.part[k] *
                   from[(row.first + static_cast<std::int64_t>(i)) * image.width + column.first +
                        static_cast<std::int64_t>(k)];
        to[(top + y) * width + left + x] = static_cast<std::uint8_t>(std::clamp(sum + 0.5, 0.0, 255.0));
      }
  }
  return result;
}

Image enlarged(const Image& image) {
  constexpr std::int64_t least_side = 224;
  const std::int64_t scale = std::max<std::int64_t>(1, least_side / std::max(image.height, image.width));
  Image large{3, image.height * scale, image.width * scale, {}};
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < large.height; ++y)
      for (std::int64_t x = 0; x < large.width; ++x)
        large.pixels.push_back(image.pixels[static_cast<std::size_t>(
            (std::min(c, image.channels - 1) * image.height + y / scale) * image.width + x / scale)]);
  return large;
}

void invert(Image& image) {
  for (std::uint8_t& pixel : image.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
}

}  // namespace tessera::runtime
