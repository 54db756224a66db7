// No bytes, plain or gzip, may do more to the IDX reader than draw an Error from it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "runtime/error.hpp"
#include "runtime/gzip.hpp"
#include "runtime/idx.hpp"
#include "tests/fuzz/gzip_mutator.hpp"

/// Headers of other ranks and sizes, with as many bytes behind them as they say, or nearly so many.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return tessera::test::mutate_packed(data, size, most, seed, [](std::string& file, tessera::test::Choices& choices) {
    const std::size_t rank = choices.one_in(8) ? choices.below(6) : choices.one_in(2) ? 1 : 3;
    std::string header = {0, 0, static_cast<char>(choices.one_in(8) ? choices.below(16) : 8), static_cast<char>(rank)};
    std::size_t bytes = 1;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::uint32_t dim = choices.one_in(4) ? static_cast<std::uint32_t>(choices.size())
                                                  : static_cast<std::uint32_t>(1 + choices.below(20));
      for (int shift = 24; shift >= 0; shift -= 8) header += static_cast<char>(dim >> shift);
      bytes = std::min<std::size_t>(bytes * dim, 1 << 14);
    }
    if (choices.one_in(4)) bytes += choices.below(3) - 1;
    file = header + file.substr(std::min<std::size_t>(file.size(), 16));
    file.resize(header.size() + bytes, static_cast<char>(choices.below(256)));
  });
}

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
