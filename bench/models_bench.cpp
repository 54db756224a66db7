// The reference models' two hot calls through the emitted C API: a training step and a forward pass.
//
// TESSERA_ISA=scalar|avx2|avx512 chooses the kernels and OMP_NUM_THREADS the threads; both are printed. Names are
// MODEL/CALL/BATCH. Times are means; GFLOP/s are those of the fastest run, of the model as declared, as its header
// counts them; %ceiling is their share of the fused multiply-adds on registers that are measured in the same process
// after it, %clock that of those right after it, at the clock that it has left. Items are images.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench.hpp"
#include "bench/ceiling.hpp"
#include "vit_cifar.h"
#include "vit_mnist.h"
#include "vit_tiny.h"

namespace {

using tessera::bench::invented;
using tessera::bench::threads;
using tessera::runtime::Arena;

/// An emitted model.
struct Model {
  std::string name;
  std::int64_t image_floats, output_floats, parameter_floats, packed_floats, optimizer_floats;
  using OfBatch = std::int64_t (*)(std::int64_t batch);
  OfBatch forward_scratch_bytes, train_scratch_bytes, images_at_once, forward_flops, train_flops;
  const char* (*isa)();
  const char* (*error)(int);
  int (*init)(float*, std::uint64_t);
  int (*pack)(const float*, float*);
  decltype(&vit_mnist_forward) forward;
  decltype(&vit_mnist_train_step) train_step;
};

#define OF_BATCH(MACRO) [](std::int64_t batch) -> std::int64_t { return MACRO(batch); }
#define MODEL(name, NAME)                                                                                              \
  const Model name {                                                                                                   \
    #name, NAME##_IMAGE_FLOATS, NAME##_OUTPUT_FLOATS, NAME##_PARAMETER_FLOATS, NAME##_PACKED_FLOATS,                   \
        NAME##_OPTIMIZER_FLOATS, OF_BATCH(NAME##_FORWARD_SCRATCH_BYTES), OF_BATCH(NAME##_TRAIN_SCRATCH_BYTES),         \
        name##_images_at_once, OF_BATCH(NAME##_FORWARD_FLOPS), OF_BATCH(NAME##_TRAIN_FLOPS), name##_isa, name##_error, \
        name##_init, name##_pack, name##_forward, name##_train_step                                                    \
  }
MODEL(vit_mnist, VIT_MNIST);
MODEL(vit_cifar, VIT_CIFAR);
MODEL(vit_tiny, VIT_TINY);

constexpr std::int64_t alignment = VIT_TINY_ALIGNMENT;

/// Initialised weights and a batch of invented images.
struct Job {
  Job(const Model& model, std::int64_t batch)
      : parameters(Arena::of_floats(model.parameter_floats, alignment)),
        packed(Arena::of_floats(model.packed_floats, alignment)),
        images(invented(batch * model.image_floats, alignment)),
        outputs(Arena::of_floats(batch * model.output_floats, alignment)),
        code(model.init(parameters.floats(), 1)) {
    if (!code) code = model.pack(parameters.floats(), packed.floats());
  }

  Arena parameters, packed, images, outputs;
  int code;
};

/// Times call, which answers an error code, and reports its rate.
template <class Call>
void time(benchmark::State& state, const Model& model, std::int64_t flops, const Call& call) {
  const double seconds = tessera::bench::fastest(state, call, model.error);
  if (seconds == 0) return;
  state.SetItemsProcessed(state.iterations() * state.range(0));
  const double rate = static_cast<double>(flops) / seconds / 1e9;
  state.counters["GFLOP/s"] = rate;
  const int wide = std::string_view(model.isa()) == "avx512";
  state.counters["%clock"] = 100 * rate / ceiling_after_work_gflops(wide, threads());
  state.counters["%ceiling"] = 100 * rate / ceiling_gflops(wide, threads());
}

void forward(benchmark::State& state, const Model& model) {
  const std::int64_t batch = state.range(0);
  const Job job(model, batch);
  const Arena scratch(model.forward_scratch_bytes(batch), alignment);
  time(state, model, model.forward_flops(batch), [&] {
    if (job.code) return job.code;
    return model.forward(job.parameters.floats(), job.packed.floats(), job.images.floats(), batch, job.outputs.floats(),
                         scratch.data());
  });
}

void train_step(benchmark::State& state, const Model& model) {
  const std::int64_t batch = state.range(0);
  const Job job(model, batch);
  const Arena gradients = Arena::of_floats(model.parameter_floats, alignment);
  const Arena optimizer = Arena::of_floats(model.optimizer_floats, alignment);
  const std::int64_t at_once = model.images_at_once(batch);
  const Arena scratch(model.train_scratch_bytes(at_once), alignment);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
  std::int64_t step = 0;
  float loss = 0;
  time(state, model, model.train_flops(batch), [&] {
    if (job.code) return job.code;
    return model.train_step(job.parameters.floats(), job.packed.floats(), gradients.floats(), optimizer.floats(),
                            job.images.floats(), labels.data(), batch, at_once, 1, ++step, 0.001f, job.outputs.floats(),
                            &loss, scratch.data());
  });
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("kernels", vit_mnist_isa());
  benchmark::AddCustomContext("threads", std::to_string(threads()));
  const auto bench = [](const Model& model, auto call, const char* name, std::vector<std::int64_t> batches) {
    auto* const all = benchmark::RegisterBenchmark((model.name + "/" + name).c_str(),
                                                   [&model, call](benchmark::State& state) { call(state, model); });
    all->Unit(benchmark::kMillisecond)->UseRealTime()->ArgsProduct({batches});
  };
  bench(vit_mnist, forward, "forward", {128});
  bench(vit_mnist, train_step, "train_step", {128});
  bench(vit_cifar, forward, "forward", {64});
  bench(vit_cifar, train_step, "train_step", {64});
  bench(vit_tiny, forward, "forward", {1, 8});
  bench(vit_tiny, train_step, "train_step", {8});
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
