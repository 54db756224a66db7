// An emitted forward pass as a table, and run over any number of images: for programs around more than one model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Functions return 0 or an error code that `error` puts into words.
struct ForwardPass {
  std::span<const tessera_parameter> parameters;
  std::int64_t parameter_floats = 0, packed_floats = 0, output_floats = 0, alignment = 64;
  std::int64_t (*scratch_bytes)(std::int64_t batch) = nullptr;
  const char* (*error)(int code) = nullptr;
  int (*pack)(const float* parameters, float* packed) = nullptr;
  int (*forward)(const float* parameters, const float* packed, const float* images, std::int64_t batch, float* outputs,
                 void* scratch) = nullptr;
  const Cuda* cuda = nullptr;  ///< the same pass on a GPU; null: the program was built without
};

/// A forward pass with its parameters.
class PackedPass {
 public:
  /// `parameters` lie as `pass` says; `on_gpu`: it computes. Throws an Error where they cannot be packed, or where a
  /// GPU is asked for and there is none. `pass` outlives it.
  PackedPass(const ForwardPass& pass, Arena parameters, bool on_gpu = false);

  const float* parameters() const { return parameters_.floats(); }
  /// The outputs of [count, floats], a batch after the other; `done` is told the size of each.
  std::vector<float> operator()(std::span<const float> inputs, std::int64_t floats,
                                const std::function<void(std::int64_t images)>& done = nullptr) const;

 private:
  struct OnGpu;
  void check(int code) const;

  const ForwardPass& pass_;
  Arena parameters_, packed_, scratch_;
  std::shared_ptr<OnGpu> gpu_;
};

}  // namespace tessera::runtime

/// The table of the forward pass whose functions begin with `model` and whose macros begin with `MODEL`.
#define TESSERA_FORWARD_PASS(model, MODEL)                                                                    \
  ::tessera::runtime::ForwardPass {                                                                           \
    .parameters = model##_parameters, .parameter_floats = MODEL##_PARAMETER_FLOATS,                           \
    .packed_floats = MODEL##_PACKED_FORWARD_FLOATS, .output_floats = MODEL##_OUTPUT_FLOATS,                   \
    .alignment = MODEL##_ALIGNMENT,                                                                           \
    .scratch_bytes = [](std::int64_t batch) -> std::int64_t { return MODEL##_FORWARD_SCRATCH_BYTES(batch); }, \
    .error = model##_error, .pack = model##_pack_forward, .forward = model##_forward                          \
  }
