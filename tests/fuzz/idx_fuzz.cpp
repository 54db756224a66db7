// No bytes, plain or gzip, may do more to the IDX reader than draw an Error from it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "runtime/error.hpp"
#include "runtime/gzip.hpp"
#include "runtime/idx.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera::runtime;
  try {
    Bytes content(data, data + size);
    if (size >= 2 && content[0] == 0x1f && content[1] == 0x8b)
      content = unpack_gzip(content, 1 << 22, "input", [](auto first) { return idx_bytes(first, "input"); });
    const Idx idx = parse_idx(content, "input");
    if (elements(idx.shape) != static_cast<std::int64_t>(idx.data.size())) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
