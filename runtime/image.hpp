// Pictures, from files or from memory, made to fit a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/error.hpp"
#include "runtime/file.hpp"

namespace tessera::runtime {

/// Bytes [channels, height, width].
struct Image {
  std::int64_t channels = 0, height = 0, width = 0;
  Bytes pixels;
  std::int64_t rows = 0, columns = 0;  ///< of a padded picture: those of the picture itself, the first ones; 0: all
};

/// Pixels on a side of a picture; one with more is refused.
inline constexpr std::int64_t largest_side = 8192;

/// A picture of more pixels than the caller takes.
class TooManyPixels : public Error {
 public:
  using Error::Error;
};

/// Bytes in a file that is read as a picture; a longer one is none.
inline constexpr std::uint64_t longest_picture = std::uint64_t{1} << 28;

/// Grey of red, green and blue, in fixed point of 16 bits: Pillow's convert("L").
inline int luma(const std::uint8_t* rgb) { return (19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 0x8000) >> 16; }

/// The picture at `rgb`: rows of `width` pixels of red, green and blue, each row `stride` bytes behind the one before;
/// as 3 channels, or as 1, grey.
Image image_of_rgb(const std::uint8_t* rgb, std::int64_t width, std::int64_t height, std::int64_t stride,
                   std::int64_t channels);

/// Decodes PNG, JPEG, BMP or PGM/PPM to 1 (grey) or 3 (red, green, blue) channels, upright as EXIF metadata say; what
/// is transparent becomes white. Throws an Error that names the file where any of it is damaged or missing, and
/// TooManyPixels, before there is memory for them, where its header declares more than `most_pixels`. Pillow
/// equivalent: PIL.ImageOps.exif_transpose(image).convert("L" or "RGB"), byte for byte for opaque pictures of 8 bits.
Image decode_image(std::span<const std::uint8_t> content, std::int64_t channels, const std::string& where,
                   std::int64_t most_pixels = largest_side * largest_side);

/// Scales to height x width, each new pixel the mean of the area it covers. The proportions stay; what is then left
/// over is filled with the mean colour of the picture's border.
Image fit(const Image& image, std::int64_t height, std::int64_t width);

/// In colour and, where both sides have fewer than 224 pixels, with larger ones: to be looked at.
Image enlarged(const Image& image);

/// Light becomes dark.
void invert(Image& image);

/// The picture as a PNG file's bytes.
Bytes encode_png(std::span<const std::uint8_t> pixels, std::int64_t channels, std::int64_t height, std::int64_t width);

}  // namespace tessera::runtime
