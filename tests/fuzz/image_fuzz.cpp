// No bytes may do more to the reader of pictures than draw an Error from it, and what it reads can be prepared.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "runtime/error.hpp"
#include "runtime/image.hpp"
#include "runtime/preprocess.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

/// Gives each chunk of a PNG that lies within the file its checksum: what is changed then gets behind that check. One
/// in eight keeps a wrong one.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 == 0 || size < 8 || data[0] != 0x89) return size;
  for (std::size_t at = 8; at + 12 <= size;) {
    std::size_t length = 0;
    for (int i = 0; i < 4; ++i) length = length << 8 | data[at + static_cast<std::size_t>(i)];
    if (length > size - at - 12) break;
    const uLong sum = crc32(0, data + at + 4, static_cast<uInt>(length + 4));
    for (std::size_t i = 0; i < 4; ++i) data[at + 8 + length + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    at += 12 + length;
  }
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera::runtime;
  try {
    const Image image = decode_image({data, size}, size % 2 == 0 ? 1 : 3, "input");
    if (image.pixels.size() != static_cast<std::size_t>(image.channels * image.height * image.width)) std::abort();
    if (image.height * image.width > 1 << 16) return 0;  // time is better spent on other bytes
    for (const double crop : {0.0, 0.9})
      if (prepared(image, {.crop = crop}, 12, 16).pixels.size() != static_cast<std::size_t>(image.channels * 12 * 16))
        std::abort();
  } catch (const Error&) {
  }
  return 0;
}
