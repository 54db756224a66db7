// What the decoders of picture files have in common; image.hpp is what others use.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/file.hpp"
#include "runtime/image.hpp"

namespace tessera::runtime {

/// A decoded picture: samples [height, width, channels] of 8 bits each.
struct Raster {
  int channels = 0;  ///< 1 grey, 2 grey and opacity, 3 RGB, 4 RGB and opacity
  std::int64_t height = 0, width = 0;
  Bytes samples;
  int orientation = 1;  ///< as the EXIF metadata has it, from 1 to 8; 1: as it lies
};

/// Each decodes one format to its end. Throws an Error that names the file where any of it is damaged, where it holds
/// less than it declares, or where a checksum differs; TooManyPixels where the header declares more than `most_pixels`.
Raster decode_png(std::span<const std::uint8_t> content, const std::string& where, std::int64_t most_pixels);
Raster decode_jpeg(std::span<const std::uint8_t> content, const std::string& where, std::int64_t most_pixels);
Raster decode_bmp(std::span<const std::uint8_t> content, const std::string& where, std::int64_t most_pixels);
/// Binary PGM or PPM.
Raster decode_pnm(std::span<const std::uint8_t> content, const std::string& where, std::int64_t most_pixels);

/// Throws TooManyPixels where width x height are more than `most_pixels`.
void check_pixels(std::int64_t width, std::int64_t height, std::int64_t most_pixels, const std::string& where);

/// The orientation that EXIF metadata (a TIFF structure) tell, or 1 where they tell none. Source: EXIF 2.32, 4.6.
int exif_orientation(std::span<const std::uint8_t> tiff);

}  // namespace tessera::runtime
