// PNG files made chunk by chunk, as no encoder would make them.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>

namespace tessera::runtime {

inline std::string big_endian(std::uint32_t word) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(word >> shift);
  return out;
}

inline std::string png_chunk(const std::string& kind, const std::string& data) {
  const std::string body = kind + data;
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(static_cast<std::uint32_t>(crc));
}

inline std::string deflated(const std::string& content) {
  std::string out(compressBound(content.size()), '\0');
  uLongf size = out.size();
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(content.data()), content.size());
  return out.substr(0, size);
}

inline const std::string png_signature = "\x89PNG\r\n\x1a\n";

inline std::string png_header(std::uint32_t width, std::uint32_t height, int depth = 8, int colour = 0, int packing = 0,
                              int filter = 0, int interlace = 0) {
  std::string data = big_endian(width) + big_endian(height);
  for (const int byte : {depth, colour, packing, filter, interlace}) data += static_cast<char>(byte);
  return png_chunk("IHDR", data);
}

/// A whole file of 8 bits a sample; `rows` are its filtered rows, `more` are chunks before them.
inline std::string png_file(std::uint32_t width, std::uint32_t height, int colour, int interlace,
                            const std::string& rows, const std::string& more = "") {
  return png_signature + png_header(width, height, 8, colour, 0, 0, interlace) + more +
         png_chunk("IDAT", deflated(rows)) + png_chunk("IEND", "");
}

}  // namespace tessera::runtime
