// No bytes, plain or gzip, may do more to the CIFAR-10 reader than draw an Error from it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "runtime/cifar.hpp"
#include "runtime/error.hpp"
#include "runtime/gzip.hpp"
#include "tests/fuzz/gzip_mutator.hpp"

/// Records with other labels, a record more or fewer, and a byte.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return tessera::test::mutate_packed(data, size, most, seed, [](std::string& file, tessera::test::Choices& choices) {
    constexpr std::size_t record = 1 + 3072;
    file.resize(choices.below(4) * record + (choices.one_in(4) ? choices.below(3) : 0), '\7');
    for (std::size_t at = 0; at < file.size(); at += record)
      file[at] = static_cast<char>(choices.one_in(4) ? choices.below(256) : choices.below(11));
  });
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera::runtime;
  try {
    Bytes content(data, data + size);
    if (size >= 2 && content[0] == 0x1f && content[1] == 0x8b) content = unpack_gzip(content, 1 << 22, "input");
    Dataset images;
    parse_cifar(content, "input", images);
    if (images.pixels.size() != images.labels.size() * 3072) std::abort();
    for (const std::int32_t label : images.labels)
      if (label < 0 || label > 9) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
