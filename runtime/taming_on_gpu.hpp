// A transformer over tokens on a GPU: its training step, and its loss on images that it does not train on.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/gpu.hpp"
#include "runtime/taming_program.hpp"
#include "runtime/taming_run.hpp"

namespace tessera::runtime {

/// Parameters, moments and what a step needs beside them are in the GPU's memory.
class TamingOnGpu {
 public:
  /// For steps of at most `batch` images; 0: it trains nothing. Throws an Error where there is no GPU, or where it has
  /// no room. `taming` outlives it.
  TamingOnGpu(const Taming& taming, std::int64_t batch);
  TamingOnGpu(const TamingOnGpu&) = delete;
  TamingOnGpu& operator=(const TamingOnGpu&) = delete;

  /// From the CPU's memory, and back. `optimizer` is nothing where it trains nothing.
  void load(const float* parameters, const float* optimizer) const;
  void store(float* parameters, float* optimizer) const;

  /// The step of that number, counted from 1, over tokens [batch, positions]: the loss. Throws an Error where the loss
  /// or a gradient is not a number; parameters and moments are then as before.
  float step(std::span<const std::int32_t> read, std::span<const std::int32_t> wanted, std::int64_t number,
             std::uint64_t seed, float learning_rate) const;
  /// The mean cross entropy of a token, in nats.
  double nats_a_token(const Tokens& tokens) const;

 private:
  struct Given {
    tessera_cuda_step step;
    float loss;
  };

  const Taming& taming_;
  std::int64_t positions_, batch_;
  Gpu gpu_;
  GpuParameters parameters_;
  GpuMemory gradients_, optimizer_, read_, wanted_, given_, outputs_, scratch_;
};

}  // namespace tessera::runtime
