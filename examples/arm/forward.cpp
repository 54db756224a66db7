#include <cstdint>
#include <cstdio>

#include "small_vit.h"

// Sizes are macros: all memory can be static.
constexpr std::int64_t batch = 2, pixels = 16 * 16, classes = 3;
alignas(SMALL_VIT_ALIGNMENT) float parameters[SMALL_VIT_PARAMETER_FLOATS];
alignas(SMALL_VIT_ALIGNMENT) float packed[SMALL_VIT_PACKED_FORWARD_FLOATS + 1];  // there may be nothing to pack
alignas(SMALL_VIT_ALIGNMENT) float images[batch * pixels];
alignas(SMALL_VIT_ALIGNMENT) float outputs[batch * classes];
alignas(SMALL_VIT_ALIGNMENT) unsigned char scratch[SMALL_VIT_FORWARD_SCRATCH_BYTES(batch)];

int main() {
  for (int i = 0; i < batch * pixels; ++i) images[i] = static_cast<float>(i % 5) / 4;
  int code = small_vit_init(parameters, 1);  // as at the start of training
  if (!code) code = small_vit_pack_forward(parameters, packed);
  if (!code) code = small_vit_forward(parameters, packed, images, batch, outputs, scratch);
  if (code) return std::fprintf(stderr, "%s\n", small_vit_error(code)), 1;
  std::printf("%s\n", small_vit_isa());
  for (const float output : outputs) std::printf("%.9g\n", output);
}
