// Single kernels through the emitted C API (kernels.hpp), each beside what the machine gives at best, which is measured
// in the same process right after it: products beside fused multiply-adds on registers, what passes over memory beside
// a copy between arrays of the same size, and beside the longer of that copy and its own instructions on near numbers.
//
// TESSERA_ISA=avx2|avx512 chooses the kernels and OMP_NUM_THREADS the threads. Names are KERNEL/IMAGES, an image being
// 197 tokens. GFLOP/s are of the contractions alone, 2 a multiply-add; %ceiling is their share of the multiply-adds at
// rest, %clock that of those right after them, at the clock that they have left. GB/s are of the inputs read and the
// outputs written.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attention_12.h"
#include "attention_12_1025.h"
#include "attention_3.h"
#include "bench/bench.hpp"
#include "bench/ceiling.hpp"
#include "bench/functions.hpp"
#include "conv_128x32.h"
#include "conv_16x28.h"
#include "exponentials.h"
#include "gelus.h"
#include "gemm_192x192.h"
#include "gemm_192x576.h"
#include "gemm_192x768.h"
#include "gemm_3072x768.h"
#include "gemm_768x192.h"
#include "gemm_768x2304.h"
#include "gemm_768x3072.h"
#include "gemm_768x768.h"
#include "layer_norms.h"
#include "softmaxes.h"
#include "softmaxes_208.h"
#include "two_convs_128x32.h"

namespace {

using tessera::bench::invented;
using tessera::bench::threads;
using tessera::runtime::Arena;

/// An emitted model of one kernel.
struct Kernel {
  std::string name;
  double products;  ///< multiply-adds of its contractions for an image; 0: it is measured by its memory
  double simple;    ///< additions and the like for a number, where there are no products
  tessera::bench::Function function;  ///< for each number, beside them
  std::int64_t image_floats, output_floats, parameter_floats, packed_floats;
  std::int64_t (*scratch_bytes)(std::int64_t batch);
  const char* (*isa)();
  const char* (*error)(int);
  int (*init)(float*, std::uint64_t);
  int (*pack)(const float*, float*);
  decltype(&gelus_forward) forward;
};

#define KERNEL(name, NAME, products, simple, function)                                                      \
  Kernel {                                                                                                  \
    #name, products, simple, tessera::bench::Function::function, NAME##_IMAGE_FLOATS, NAME##_OUTPUT_FLOATS, \
        NAME##_PARAMETER_FLOATS, NAME##_PACKED_FLOATS,                                                      \
        [](std::int64_t batch) -> std::int64_t { return NAME##_FORWARD_SCRATCH_BYTES(batch); }, name##_isa, \
        name##_error, name##_init, name##_pack, name##_forward                                              \
  }
#define GEMM(k, n) KERNEL(gemm_##k##x##n, GEMM_##k##X##n, 197.0 * k * n, 0, none)

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all{
      GEMM(192, 576),  // ViT-Tiny: queries, keys and values; attention's output; the MLP
      GEMM(192, 192),
      GEMM(192, 768),
      GEMM(768, 192),
      GEMM(768, 2304),  // ViT-B
      GEMM(768, 768),
      GEMM(768, 3072),
      GEMM(3072, 768),
      KERNEL(conv_128x32, CONV_128X32, 9.0 * 128 * 128 * 32 * 32, 0, none),  // VQGAN
      KERNEL(conv_16x28, CONV_16X28, 9.0 * 16 * 16 * 28 * 28, 0, none),
      KERNEL(attention_3, ATTENTION_3, 2 * 197.0 * 197 * 192, 0, none),
      KERNEL(attention_12, ATTENTION_12, 2 * 197.0 * 197 * 768, 0, none),
      KERNEL(attention_12_1025, ATTENTION_12_1025, 2 * 1025.0 * 1025 * 768, 0, none),
      KERNEL(layer_norms, LAYER_NORMS, 0, 7, none),
      KERNEL(gelus, GELUS, 0, 1, gelu),
      KERNEL(softmaxes, SOFTMAXES, 0, 6, exp),
      KERNEL(softmaxes_208, SOFTMAXES_208, 0, 6, exp),
      KERNEL(exponentials, EXPONENTIALS, 0, 1, exp),
  };
  return all;
}

void run(benchmark::State& state, const Kernel& kernel) {
  const std::int64_t batch = state.range(0);
  constexpr std::int64_t alignment = GELUS_ALIGNMENT;
  const Arena parameters = Arena::of_floats(kernel.parameter_floats, alignment);
  const Arena packed = Arena::of_floats(kernel.packed_floats, alignment);
  const Arena images = invented(batch * kernel.image_floats, alignment);
  const Arena outputs = Arena::of_floats(batch * kernel.output_floats, alignment);
  const Arena scratch(kernel.scratch_bytes(batch), alignment);
  int code = kernel.init(parameters.floats(), 1);
  if (!code) code = kernel.pack(parameters.floats(), packed.floats());
  const double seconds = tessera::bench::fastest(
      state,
      [&] {
        if (code) return code;
        return kernel.forward(parameters.floats(), packed.floats(), images.floats(), batch, outputs.floats(),
                              scratch.data());
      },
      kernel.error);
  if (seconds == 0) return;

  const int wide = std::string_view(kernel.isa()) == "avx512";
  if (kernel.products > 0) {
    const double rate = 2 * kernel.products * static_cast<double>(batch) / seconds / 1e9;
    state.counters["GFLOP/s"] = rate;
    state.counters["%clock"] = 100 * rate / ceiling_after_work_gflops(wide, threads());
    state.counters["%ceiling"] = 100 * rate / ceiling_gflops(wide, threads());
  } else {
    const std::int64_t floats = batch * (kernel.image_floats + kernel.output_floats);
    const double copy = 4 * static_cast<double>(floats) / ceiling_copy_gbytes(wide, threads(), floats / 2) / 1e9;
    const double simple = kernel.simple * 2 / ceiling_gflops(wide, threads()) / 1e9;
    const double function = tessera::bench::seconds_of(kernel.function, wide) / threads();
    const double instructions = static_cast<double>(batch * kernel.output_floats) * (simple + function);
    state.counters["GB/s"] = 4 * static_cast<double>(floats) / seconds / 1e9;
    state.counters["%copy"] = 100 * copy / seconds;
    state.counters["%bound"] = 100 * std::max(copy, instructions) / seconds;
  }
}

/// Loss and gradients of two convolutions: two forward passes, one gradient of an input, two of weights.
void run_gradients(benchmark::State& state) {
  const std::int64_t batch = state.range(0), alignment = TWO_CONVS_128X32_ALIGNMENT;
  const Arena parameters = Arena::of_floats(TWO_CONVS_128X32_PARAMETER_FLOATS, alignment);
  const Arena gradients = Arena::of_floats(TWO_CONVS_128X32_PARAMETER_FLOATS, alignment);
  const Arena packed = Arena::of_floats(TWO_CONVS_128X32_PACKED_FLOATS, alignment);
  const Arena images = invented(batch * TWO_CONVS_128X32_IMAGE_FLOATS, alignment);
  const Arena outputs = Arena::of_floats(batch * TWO_CONVS_128X32_OUTPUT_FLOATS, alignment);
  const Arena scratch(TWO_CONVS_128X32_TRAIN_SCRATCH_BYTES(batch), alignment);
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(batch));
  float loss = 0;
  int code = two_convs_128x32_init(parameters.floats(), 1);
  if (!code) code = two_convs_128x32_pack(parameters.floats(), packed.floats());
  const double seconds = tessera::bench::fastest(
      state,
      [&] {
        if (code) return code;
        return two_convs_128x32_loss_and_gradients(parameters.floats(), packed.floats(), images.floats(), labels.data(),
                                                   batch, batch, 1, 1, outputs.floats(), &loss, gradients.floats(),
                                                   scratch.data());
      },
      two_convs_128x32_error);
  if (seconds == 0) return;
  const double rate = 2 * 5 * 9.0 * 128 * 128 * 32 * 32 * static_cast<double>(batch) / seconds / 1e9;
  const int wide = std::string_view(two_convs_128x32_isa()) == "avx512";
  state.counters["GFLOP/s"] = rate;
  state.counters["%clock"] = 100 * rate / ceiling_after_work_gflops(wide, threads());
  state.counters["MB"] = 1e-6 * static_cast<double>(TWO_CONVS_128X32_TRAIN_SCRATCH_BYTES(batch));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("kernels", kernels().front().isa());
  benchmark::AddCustomContext("threads", std::to_string(threads()));
  for (const Kernel& kernel : kernels()) {
    auto* const bench =
        benchmark::RegisterBenchmark(kernel.name.c_str(), [&](benchmark::State& state) { run(state, kernel); });
    bench->Unit(benchmark::kMicrosecond)->UseRealTime()->Arg(1);
    if (kernel.products > 0) bench->Arg(8);  // of the others one image fits L2, and more do not
  }
  benchmark::RegisterBenchmark("two_convs_128x32_gradients", run_gradients)
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime()
      ->Arg(1)
      ->Arg(8);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
