// The main job's two hot calls through the emitted C API, at the recipe's batch: a training step and a forward pass.
//
// TESSERA_ISA=scalar|avx2|avx512 chooses the kernels and OMP_NUM_THREADS the threads; the kernels in use are printed in
// the context. Items are images.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include "vit_mnist.h"

namespace {

constexpr std::int64_t batch = 128, pixels = 28 * 28, classes = 10;

/// Zeroed memory with the alignment that the model demands.
class Memory {
 public:
  explicit Memory(std::int64_t bytes) : start_(::operator new(static_cast<std::size_t>(bytes), alignment)) {
    std::fill_n(static_cast<char*>(start_), bytes, '\0');
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::operator delete(start_, alignment); }

  void* get() { return start_; }
  float* floats() { return static_cast<float*>(start_); }

 private:
  static constexpr std::align_val_t alignment{VIT_MNIST_ALIGNMENT};
  void* start_;
};

constexpr std::int64_t floats(std::int64_t count) { return count * static_cast<std::int64_t>(sizeof(float)); }

/// Initialised parameters and a batch of invented images: time does not depend on what they show.
struct Job {
  Memory parameters{floats(VIT_MNIST_PARAMETER_FLOATS)};
  Memory images{floats(batch * pixels)};
  Memory outputs{floats(batch * classes)};
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(batch);

  Job() {
    vit_mnist_init(parameters.floats(), 1);
    std::uint32_t state = 1;
    for (float& pixel : std::span(images.floats(), batch * pixels)) {
      state = state * 1664525u + 1013904223u;
      pixel = static_cast<float>(state >> 8) / 16777216.0f;
    }
    for (std::int64_t i = 0; i < batch; ++i)
      labels[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i % classes);
  }
};

void train_step(benchmark::State& state) {
  Job job;
  Memory gradients(floats(VIT_MNIST_PARAMETER_FLOATS)), optimizer(floats(VIT_MNIST_OPTIMIZER_FLOATS)),
      scratch(VIT_MNIST_TRAIN_SCRATCH_BYTES(batch));
  std::int64_t step = 0;
  float loss = 0;
  for (auto _ : state) {
    int code =
        vit_mnist_train_step(job.parameters.floats(), gradients.floats(), optimizer.floats(), job.images.floats(),
                             job.labels.data(), batch, 1, ++step, 0.005f, job.outputs.floats(), &loss, scratch.get());
    if (code) return state.SkipWithError(vit_mnist_error(code));
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(train_step)->Unit(benchmark::kMicrosecond)->UseRealTime();

void forward(benchmark::State& state) {
  Job job;
  Memory scratch(VIT_MNIST_FORWARD_SCRATCH_BYTES(batch));
  for (auto _ : state) {
    int code =
        vit_mnist_forward(job.parameters.floats(), job.images.floats(), batch, job.outputs.floats(), scratch.get());
    if (code) return state.SkipWithError(vit_mnist_error(code));
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(forward)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("kernels", vit_mnist_isa());
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
