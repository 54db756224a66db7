// For the dry run of bench/peers/gpu.py: what a model's library gives of the C API for CUDA, by the model's kernels for
// the CPU. MODEL and MODEL_UPPER name it, MODEL_HEADER and MODEL_CUDA_HEADER are what the build has emitted. The
// forward pass of the model that TESSERA_TEST_WRONG in the environment names is wrong.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include MODEL_HEADER
#include MODEL_CUDA_HEADER

#define JOINED_2(a, b) a##b
#define JOINED(a, b) JOINED_2(a, b)
#define CPU(what) JOINED(MODEL, _##what)
#define CUDA(what) JOINED(MODEL, _cuda_##what)
#define MACRO(what) JOINED(MODEL_UPPER, _##what)
#define TEXT_2(a) #a
#define TEXT(a) TEXT_2(a)

namespace {
std::vector<float> packed(MACRO(PACKED_FLOATS) + 1);
void* scratch_of(std::int64_t bytes) {
  static std::vector<double> memory;
  if (memory.size() * sizeof(double) < static_cast<std::size_t>(bytes) + 64)
    memory.resize(static_cast<std::size_t>(bytes) / sizeof(double) + 16);
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
  return reinterpret_cast<char*>(memory.data()) + (64 - beyond) % 64;
}
}  // namespace

int64_t CUDA(largest_batch)(void) { return 256; }
int CUDA(pack)(const float* parameters, void*, void*) { return CPU(pack)(parameters, packed.data()); }
int CUDA(forward)(const float* parameters, const void*, const float* images, int64_t batch, float* outputs, void*,
                  void*) {
  const int code =
      CPU(forward)(parameters, packed.data(), images, batch, outputs, scratch_of(MACRO(FORWARD_SCRATCH_BYTES)(batch)));
  const char* const wrong = std::getenv("TESSERA_TEST_WRONG");
  if (wrong && std::string_view(wrong) == TEXT(MODEL)) outputs[0] += 100;
  return code;
}
int CUDA(train_step)(float* parameters, void*, float* gradients, float* optimizer, const float* images,
                     const int32_t* labels, const tessera_cuda_step* step, int64_t batch, float* outputs, float* loss,
                     void*, void*) {
  const int64_t at_once = CPU(images_at_once)(batch);
  return CPU(train_step)(parameters, packed.data(), gradients, optimizer, images, labels, batch, at_once, step->seed,
                         step->step, step->learning_rate, outputs, loss,
                         scratch_of(MACRO(TRAIN_SCRATCH_BYTES)(at_once)));
}
int CUDA(next_step)(tessera_cuda_step* step, void*) {
  ++step->step;
  return 0;
}
