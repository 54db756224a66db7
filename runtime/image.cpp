#include "runtime/image.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/error.hpp"
#include "stb_image.h"
#include "stb_image_write.h"

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

/// Whether a JPEG's DHT segment consists of whole Huffman tables of at most 256 symbols each, as it must.
bool tables_fit(std::span<const std::uint8_t> segment) {
  while (!segment.empty()) {
    if (segment.size() < 17) return false;
    const std::size_t symbols = std::accumulate(segment.begin() + 1, segment.begin() + 17, std::size_t{0});
    if (symbols > 256 || 17 + symbols > segment.size()) return false;
    segment = segment.subspan(17 + symbols);
  }
  return true;
}

/// Refuses what the decoder takes without a word: it fills what is missing with grey, and version 2.27 writes a Huffman
/// table that is too long over what lies behind it. Source: ITU-T T.81, annex B.
void check_jpeg(std::span<const std::uint8_t> content, const std::string& where) {
  std::size_t at = 0;
  while (at + 1 < content.size()) {
    const std::uint8_t marker = content[at + 1];
    const bool alone = marker == 0x00 || marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    if (content[at] != 0xff || marker == 0xff) {
      ++at;  // coded data of a scan, or filling before a marker
    } else if (marker == 0xd9) {
      return;
    } else if (alone) {
      at += 2;
    } else {
      if (at + 3 >= content.size()) break;
      const std::size_t length = std::size_t{content[at + 2]} << 8 | content[at + 3];
      const auto segment = content.subspan(at + 2, std::min(length, content.size() - at - 2));
      if (marker == 0xc4 && segment.size() > 2 && !tables_fit(segment.subspan(2)))
        fail(where, " is not a JPEG picture that can be read: a Huffman table is longer than it may be");
      at += 2 + length;
    }
  }
  fail(where, " is truncated: a JPEG picture without an end");
}

/// Refuses PGM and PPM pictures that the decoder reads beyond their numbers' or their own end, and those of 16 bits, of
/// which it makes 8 wrongly (CVE-2021-42716). Source: Netpbm's pgm(5), ppm(5).
void check_pnm(std::span<const std::uint8_t> content, const std::string& where) {
  std::size_t at = 2;
  const auto skip = [&](const auto& what) {
    const std::size_t from = at;
    while (at < content.size() && what(content[at])) ++at;
    return at - from;
  };
  std::array<std::int64_t, 3> numbers{};  // width, height, the largest value
  for (std::int64_t& number : numbers) {
    skip([](int c) { return std::isspace(c) != 0; });
    while (at < content.size() && content[at] == '#') {
      skip([](int c) { return c != '\n' && c != '\r'; });
      skip([](int c) { return std::isspace(c) != 0; });
    }
    const std::size_t digits = skip([&](int c) {
      if (std::isdigit(c)) number = std::min<std::int64_t>(10 * number + c - '0', 1 << 20);
      return std::isdigit(c) != 0;
    });
    if (digits == 0 || digits > 5 || number == 0) fail(where, " is not a PGM or PPM picture that can be read");
  }
  if (numbers[2] > 255) fail(where, " is a PGM or PPM picture of 16 bits, 8 can be read");
  const std::int64_t bytes = numbers[0] * numbers[1] * (content[1] == '6' ? 3 : 1);
  if (static_cast<std::int64_t>(content.size() - at) - 1 < bytes)
    fail(where, " is truncated: a PGM or PPM picture of ", numbers[0], "x", numbers[1], " has more bytes");
}

}  // namespace

Image decode_image(std::span<const std::uint8_t> content, std::int64_t channels, const std::string& where) {
  if (channels != 1 && channels != 3) fail(where, " cannot be read for a model of ", channels, " channels");
  if (content.size() > longest_picture) fail(where, " is too long for a picture: it has ", content.size(), " bytes");
  if (!content.empty() && content[0] == 0xff) check_jpeg(content, where);
  if (content.size() > 2 && content[0] == 'P') check_pnm(content, where);
  const int wanted = static_cast<int>(channels) + 1;  // and transparency
  int width = 0, height = 0, found = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> decoded(
      stbi_load_from_memory(content.data(), static_cast<int>(content.size()), &width, &height, &found, wanted),
      stbi_image_free);
  if (!decoded) fail(where, " is not a PNG, JPEG, BMP or PGM picture that can be read: ", stbi_failure_reason());
  if (width < 1 || height < 1) fail(where, " is a picture of ", width, "x", height, ", which holds nothing");
  Image image{channels, height, width, Bytes(static_cast<std::size_t>(channels * height * width))};
  const std::int64_t area = image.height * image.width;
  for (std::int64_t i = 0; i < area; ++i) {
    const stbi_uc* pixel = decoded.get() + i * wanted;
    const int opaque = pixel[channels];
    for (std::int64_t c = 0; c < channels; ++c)
      image.pixels[static_cast<std::size_t>(c * area + i)] =
          static_cast<std::uint8_t>((pixel[c] * opaque + 255 * (255 - opaque) + 127) / 255);
  }
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

void invert(Image& image) {
  for (std::uint8_t& pixel : image.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
}

Bytes encode_png(std::span<const std::uint8_t> pixels, std::int64_t channels, std::int64_t height, std::int64_t width) {
  const std::int64_t area = height * width;
  Bytes interleaved(pixels.size()), png;
  for (std::int64_t i = 0; i < area; ++i)
    for (std::int64_t c = 0; c < channels; ++c)
      interleaved[static_cast<std::size_t>(i * channels + c)] = pixels[static_cast<std::size_t>(c * area + i)];
  const auto append = [](void* context, void* data, int size) {
    const auto* first = static_cast<const std::uint8_t*>(data);
    static_cast<Bytes*>(context)->insert(static_cast<Bytes*>(context)->end(), first, first + size);
  };
  if (!stbi_write_png_to_func(append, &png, static_cast<int>(width), static_cast<int>(height),
                              static_cast<int>(channels), interleaved.data(), static_cast<int>(width * channels)))
    fail("a picture of ", channels, "x", height, "x", width, " cannot be encoded as PNG");
  return png;
}

}  // namespace tessera::runtime
