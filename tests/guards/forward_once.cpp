// forward_once: one forward pass of vit_tiny at batch 1, for instructions.py to count what it executes.
//
// Weights and pixels are small invented numbers: which instructions run does not depend on them.
#include <cstdint>
#include <cstdio>

#include "runtime/arena.hpp"
#include "vit_tiny.h"

int main() {
  using tessera::runtime::Arena;
  const auto invented = [](std::int64_t floats) {
    Arena arena = Arena::of_floats(floats, VIT_TINY_ALIGNMENT);
    for (std::int64_t i = 0; i < floats; ++i) arena.floats()[i] = static_cast<float>(i % 17 - 8) / 256;
    return arena;
  };
  const Arena parameters = invented(VIT_TINY_PARAMETER_FLOATS), images = invented(VIT_TINY_IMAGE_FLOATS);
  const Arena outputs = Arena::of_floats(VIT_TINY_OUTPUT_FLOATS, VIT_TINY_ALIGNMENT);
  const Arena scratch(VIT_TINY_FORWARD_SCRATCH_BYTES(1), VIT_TINY_ALIGNMENT);
  const Arena packed = Arena::of_floats(VIT_TINY_PACKED_FLOATS, VIT_TINY_ALIGNMENT);
  int code = vit_tiny_pack(parameters.floats(), packed.floats());
  if (!code)
    code = vit_tiny_forward(parameters.floats(), packed.floats(), images.floats(), 1, outputs.floats(), scratch.data());
  if (code) std::fprintf(stderr, "vit_tiny_forward: %s\n", vit_tiny_error(code));
  return code;
}
