// No bytes may do more to the reader of pictures than draw an Error from it, and what it reads can be prepared.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "runtime/error.hpp"
#include "runtime/image.hpp"
#include "runtime/preprocess.hpp"

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
