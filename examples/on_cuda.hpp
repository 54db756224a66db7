// Tables of emitted parts on a GPU, for a program that is written by hand around several of them: for one source of it,
// which nvcc compiles, with NAME_cuda.h of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "runtime/model.hpp"

// On a machine without a GPU, another header stands for CUDA.
#if defined(TESSERA_DEVICE_HEADER)
#include TESSERA_DEVICE_HEADER
#else
#include <cuda_runtime.h>
#endif

namespace {

#include "codegen/cuda/device/program.h"

/// What knows no model.
tessera::runtime::Cuda functions_of_cuda() {
  return {
#include "codegen/cuda/device/table.inc"
  };
}

}  // namespace

/// What is the same of all parts whose functions begin with `model` and whose macros begin with `MODEL`.
#define TESSERA_PART_ON_CUDA(model, MODEL)                                                                      \
  [] {                                                                                                          \
    tessera::runtime::Cuda c = functions_of_cuda();                                                             \
    c.packed_bytes = MODEL##_CUDA_PACKED_BYTES;                                                                 \
    c.largest_batch = model##_cuda_largest_batch;                                                               \
    c.error = [](int code) -> const char* {                                                                     \
      if (code == MODEL##_CUDA_ERROR_SHARED_MEMORY)                                                             \
        return "a kernel needs more shared memory than a block can have on this GPU: those of sm_80 and sm_90 " \
               "have enough, and --cuda-tile 128x128 needs less";                                               \
      if (code != MODEL##_CUDA_ERROR_LAUNCH) return model##_error(code);                                        \
      return "CUDA refuses to start a kernel: it may be compiled for another architecture than this GPU's";     \
    };                                                                                                          \
    c.pack = model##_cuda_pack;                                                                                 \
    return c;                                                                                                   \
  }()
/// A forward pass of images, or of numbers.
#define TESSERA_FORWARD_ON_CUDA(model, MODEL)                          \
  [] {                                                                 \
    tessera::runtime::Cuda c = TESSERA_PART_ON_CUDA(model, MODEL);     \
    c.forward_scratch_bytes = [](std::int64_t batch) -> std::int64_t { \
      return MODEL##_CUDA_FORWARD_SCRATCH_BYTES(batch);                \
    };                                                                 \
    c.forward = model##_cuda_forward;                                  \
    return c;                                                          \
  }()
/// A phase of a training step, and its forward pass.
#define TESSERA_PHASE_ON_CUDA(model, MODEL)                           \
  [] {                                                                \
    tessera::runtime::Cuda c = TESSERA_FORWARD_ON_CUDA(model, MODEL); \
    c.train_scratch_bytes = [](std::int64_t batch) -> std::int64_t {  \
      return MODEL##_CUDA_TRAIN_SCRATCH_BYTES(batch);                 \
    };                                                                \
    c.phase = model##_cuda_loss_and_gradients;                        \
    c.check_phase = model##_cuda_check;                               \
    c.update = model##_cuda_update;                                   \
    return c;                                                         \
  }()
/// The training step of a model that reads tokens, and its loss.
#define TESSERA_TOKENS_ON_CUDA(model, MODEL)                            \
  [] {                                                                  \
    tessera::runtime::Cuda c = TESSERA_PART_ON_CUDA(model, MODEL);      \
    c.evaluate_scratch_bytes = [](std::int64_t batch) -> std::int64_t { \
      return MODEL##_CUDA_EVALUATE_SCRATCH_BYTES(batch);                \
    };                                                                  \
    c.train_scratch_bytes = [](std::int64_t batch) -> std::int64_t {    \
      return MODEL##_CUDA_TRAIN_SCRATCH_BYTES(batch);                   \
    };                                                                  \
    c.evaluate_tokens = model##_cuda_evaluate;                          \
    c.token_gradients = model##_cuda_loss_and_gradients;                \
    c.check = model##_cuda_check;                                       \
    c.update = model##_cuda_update;                                     \
    return c;                                                           \
  }()
