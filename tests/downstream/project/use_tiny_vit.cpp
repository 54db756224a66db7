// A downstream user of an emitted model: sizes are macros, so all memory can be static.
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "tiny_vit.h"

namespace {
constexpr std::int64_t batch = 2, pixels = 8 * 8, classes = 3;
alignas(TINY_VIT_ALIGNMENT) float parameters[TINY_VIT_PARAMETER_FLOATS];
alignas(TINY_VIT_ALIGNMENT) float packed[TINY_VIT_PACKED_FORWARD_FLOATS + 1];  // there may be nothing to pack
alignas(TINY_VIT_ALIGNMENT) float images[batch * pixels];
alignas(TINY_VIT_ALIGNMENT) float outputs[batch * classes];
alignas(TINY_VIT_ALIGNMENT) unsigned char scratch[TINY_VIT_FORWARD_SCRATCH_BYTES(batch)];
}  // namespace

int main() {
  for (int i = 0; i < batch * pixels; ++i) images[i] = static_cast<float>(i % 5) / 4;

  int code = tiny_vit_init(parameters, 1);
  if (!code) code = tiny_vit_pack_forward(parameters, packed);
  if (!code) code = tiny_vit_forward(parameters, packed, images, batch, outputs, scratch);
  if (code) {
    std::fprintf(stderr, "%s\n", tiny_vit_error(code));
    return 1;
  }
  std::printf("%s\n", tiny_vit_isa());
  for (const float output : outputs) {
    std::printf("%.9g\n", output);
    if (!std::isfinite(output)) return 1;
  }
  return 0;
}
