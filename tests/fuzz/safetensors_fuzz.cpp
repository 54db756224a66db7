// No bytes may do more to the safetensors reader than draw an Error from it, and what it accepts is consistent.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "runtime/error.hpp"
#include "runtime/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera::runtime;
  try {
    const Safetensors file = parse_safetensors({data, size}, "input");
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : file.tensors) {
      if (elements(tensor.shape) < 0) std::abort();
      bytes += tensor.bytes.size();
      const auto count = static_cast<std::size_t>(elements(tensor.shape));
      if (tensor.is_real() && (tensor.floats().size() != count || tensor.doubles().size() != count)) std::abort();
    }
    if (bytes > size) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
