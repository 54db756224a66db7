#include <algorithm>
#include <initializer_list>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/image.hpp"
#include "runtime/raster.hpp"

namespace tessera::runtime {
namespace {

/// The decoder of the format that the first bytes tell.
Raster decode(std::span<const std::uint8_t> content, const std::string& where, std::int64_t most_pixels) {
  const auto begins = [&](std::initializer_list<std::uint8_t> with) {
    return content.size() >= with.size() && std::ranges::equal(content.first(with.size()), with);
  };
  if (begins({0x89, 'P', 'N', 'G'})) return decode_png(content, where, most_pixels);
  if (begins({0xff, 0xd8})) return decode_jpeg(content, where, most_pixels);
  if (begins({'B', 'M'})) return decode_bmp(content, where, most_pixels);
  if (begins({'P', '5'}) || begins({'P', '6'})) return decode_pnm(content, where, most_pixels);
  fail(where, " is not a PNG, JPEG, BMP or PGM picture that can be read");
}

/// Where the pixel [y, x] of the upright picture lies in the stored one, from whose orientation it is turned or
/// mirrored.
std::int64_t stored_place(const Raster& raster, std::int64_t y, std::int64_t x) {
  const int orientation = raster.orientation;
  if (orientation > 4) std::swap(y, x);  // rows were columns
  if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) y = raster.height - 1 - y;
  if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) x = raster.width - 1 - x;
  return y * raster.width + x;
}

}  // namespace

void check_pixels(std::int64_t width, std::int64_t height, std::int64_t most_pixels, const std::string& where) {
  if (width * height > most_pixels)
    throw TooManyPixels(text(where, " is too large: it has ", width, "x", height, " pixels, more than ", most_pixels));
}

Image decode_image(std::span<const std::uint8_t> content, std::int64_t channels, const std::string& where,
                   std::int64_t most_pixels) {
  if (channels != 1 && channels != 3) fail(where, " cannot be read for a model of ", channels, " channels");
  if (content.size() > longest_picture) fail(where, " is too long for a picture: it has ", content.size(), " bytes");
  const Raster raster = decode(content, where, most_pixels);
  const bool turned = raster.orientation > 4;
  Image image{channels, turned ? raster.width : raster.height, turned ? raster.height : raster.width, {}};
  const std::int64_t area = image.height * image.width;
  image.pixels.resize(static_cast<std::size_t>(channels * area));
  const int colours = raster.channels < 3 ? 1 : 3;
  for (std::int64_t i = 0; i < area; ++i) {
    const std::uint8_t* const pixel =
        raster.samples.data() + stored_place(raster, i / image.width, i % image.width) * raster.channels;
    const int opaque = raster.channels % 2 == 0 ? pixel[colours] : 255;
    for (std::int64_t c = 0; c < channels; ++c) {
      const int value = colours == channels ? pixel[c] : colours == 1 ? pixel[0] : luma(pixel);
      image.pixels[static_cast<std::size_t>(c * area + i)] =
          static_cast<std::uint8_t>((value * opaque + 255 * (255 - opaque) + 127) / 255);
    }
  }
  return image;
}

}  // namespace tessera::runtime
