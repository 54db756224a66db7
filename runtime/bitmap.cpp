// BMP, PGM and PPM: a header, and pixels as they are.
#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstdint>

#include "runtime/error.hpp"
#include "runtime/raster.hpp"

namespace tessera::runtime {
namespace {

/// Little-endian numbers of a file, none of which is read beyond its end.
class BmpFile {
 public:
  BmpFile(std::span<const std::uint8_t> content, const std::string& where) : content_(content), where_(where) {}

  std::uint32_t number(std::uint64_t at, int bytes = 4) const {
    if (at + static_cast<std::uint64_t>(bytes) > content_.size()) truncated();
    std::uint32_t value = 0;
    for (int i = bytes - 1; i >= 0; --i) value = value << 8 | content_[at + static_cast<std::uint64_t>(i)];
    return value;
  }
  std::uint64_t size() const { return content_.size(); }
  [[noreturn]] void truncated() const { fail(where_, " is truncated: a BMP picture that ends before its pixels do"); }
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(where_, " is not a PNG, JPEG, BMP or PGM picture that can be read: ", parts...);
  }

 private:
  std::span<const std::uint8_t> content_;
  const std::string& where_;
};

/// Where one channel stands in a pixel of 16 or 32 bits.
struct BmpMask {
  std::uint32_t mask = 0;

  std::uint8_t of(std::uint32_t pixel) const {
    const int shift = std::countr_zero(mask);
    const std::uint64_t most = mask >> shift;
    return static_cast<std::uint8_t>(std::uint64_t{(pixel & mask) >> shift} * 255 / most);
  }
};

}  // namespace

// Source: Microsoft's BITMAPFILEHEADER, BITMAPCOREHEADER, BITMAPINFOHEADER, BITMAPV4HEADER.
Raster decode_bmp(std::span<const std::uint8_t> content, const std::string& where, std::int64_t most_pixels) {
  constexpr std::uint32_t file_header = 14, oldest_header = 12, without_compression = 0, by_masks = 3;
  const BmpFile file(content, where);
  const std::uint64_t pixels = file.number(10);
  const std::uint32_t header = file.number(file_header);
  const bool oldest = header == oldest_header;
  if (!oldest && (header < 40 || header > 124)) file.refuse("its header has ", header, " bytes");
  // Two bytes in the oldest header, four with a sign in all others.
  const auto side = [&](std::uint64_t oldest_at, std::uint64_t at) -> std::int64_t {
    if (oldest) return file.number(file_header + oldest_at, 2);
    return static_cast<std::int32_t>(file.number(file_header + at));
  };
  const std::int64_t width = side(4, 4), signed_height = side(6, 8);
  const std::int64_t height = signed_height < 0 ? -signed_height : signed_height;  // below 0: the first row comes first
  if (width < 1 || height < 1 || width > largest_side || height > largest_side)
    file.refuse("it would have ", width, "x", height, " pixels");
  check_pixels(width, height, most_pixels, where);
  const std::uint32_t bits = file.number(file_header + (oldest ? 10 : 14), 2);
  const std::uint32_t compression = oldest ? without_compression : file.number(file_header + 16);
  if (std::ranges::count(std::array{1u, 4u, 8u, 16u, 24u, 32u}, bits) == 0)
    file.refuse("its pixels have ", bits, " bits");
  const bool masked = bits == 16 || bits == 32;
  if (compression != without_compression && !(compression == by_masks && masked)) file.refuse("it is compressed");

  std::uint64_t palette = file_header + std::uint64_t{header};
  std::array<BmpMask, 4> masks{};  // red, green, blue, opacity
  if (masked) {
    masks = bits == 16 ? std::array<BmpMask, 4>{{{0x7c00}, {0x03e0}, {0x001f}, {0}}}
                       : std::array<BmpMask, 4>{{{0xff0000}, {0x00ff00}, {0x0000ff}, {0}}};
    if (compression == by_masks) {  // behind a header of 40 bytes, or as a part of a longer one
      for (std::uint32_t c = 0; c < 4; ++c)
        masks[c].mask = c < 3 || header >= 56 ? file.number(file_header + 40 + 4 * c) : 0;
      for (std::uint32_t c = 0; c < 3; ++c)
        if (masks[c].mask == 0) file.refuse("its pixels lack a colour");
    }
  }
  std::uint64_t colours = 0;
  const std::uint32_t colour_bytes = oldest ? 3 : 4;
  if (bits <= 8) {
    colours = oldest ? 0 : file.number(file_header + 32);
    if (colours == 0) colours = std::uint64_t{1} << bits;
    if (colours > std::uint64_t{1} << bits) file.refuse("its palette has ", colours, " colours");
    if (palette + colours * colour_bytes > pixels) file.refuse("its palette and its pixels overlap");
  }
  const std::uint64_t row_bytes = (static_cast<std::uint64_t>(width) * bits + 31) / 32 * 4;
  if (pixels > file.size() || file.size() - pixels < row_bytes * static_cast<std::uint64_t>(height)) file.truncated();

  Raster raster{masks[3].mask ? 4 : 3, height, width, {}};
  raster.samples.reserve(static_cast<std::size_t>(width * height * raster.channels));
  for (std::int64_t y = 0; y < height; ++y) {
    const std::int64_t stored = signed_height < 0 ? y : height - 1 - y;
    const std::uint64_t row = pixels + static_cast<std::uint64_t>(stored) * row_bytes;
    for (std::uint64_t x = 0; x < static_cast<std::uint64_t>(width); ++x) {
      if (masked) {
        const std::uint32_t pixel = file.number(row + x * (bits / 8), static_cast<int>(bits / 8));
        for (int c = 0; c < raster.channels; ++c)
          raster.samples.push_back(masks[static_cast<std::size_t>(c)].of(pixel));
        continue;
      }
      std::uint64_t at = row + x * 3;
      if (bits <= 8) {
        const std::uint64_t bit = x * bits;
        const std::uint32_t index = content[row + bit / 8] >> (8 - bits - bit % 8) & ((1u << bits) - 1);
        if (index >= colours) fail(where, " is a damaged BMP picture: its palette has no colour ", index);
        at = palette + index * colour_bytes;
      }
      raster.samples.insert(raster.samples.end(), {content[at + 2], content[at + 1], content[at]});
    }
  }
  return raster;
}

// Source: Netpbm's pgm(5), ppm(5).
Raster decode_pnm(std::span<const std::uint8_t> content, const std::string& where, std::int64_t most_pixels) {
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
    if (digits == 0 || number == 0) fail(where, " is not a PNG, JPEG, BMP or PGM picture that can be read");
  }
  const auto [width, height, most] = numbers;
  if (width > largest_side || height > largest_side)
    fail(where, " is not a PNG, JPEG, BMP or PGM picture that can be read: it would have ", width, "x", height,
         " pixels");
  check_pixels(width, height, most_pixels, where);
  if (most > 255) fail(where, " is a PGM or PPM picture of 16 bits, 8 can be read");
  Raster raster{content[1] == '6' ? 3 : 1, height, width, {}};
  const std::int64_t bytes = width * height * raster.channels;
  if (static_cast<std::int64_t>(content.size() - at) - 1 < bytes)
    fail(where, " is truncated: a PGM or PPM picture of ", width, "x", height, " has more bytes");
  const auto first = content.begin() + static_cast<std::ptrdiff_t>(at) + 1;
  raster.samples.assign(first, first + bytes);
  for (std::uint8_t& sample : raster.samples) {
    if (sample > most) fail(where, " is a damaged PGM or PPM picture: a value is larger than its largest, ", most);
    sample = static_cast<std::uint8_t>((sample * 255 + most / 2) / most);
  }
  return raster;
}

}  // namespace tessera::runtime
