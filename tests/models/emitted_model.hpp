// The C API of an emitted model as a table, so that one test can be run on every model.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>

#include "runtime/model.hpp"

namespace tessera::test {

/// What a model's header declares; the functions are those of the C API, in the order in which it documents them.
struct EmittedModel {
  std::string golden;  ///< the folder below tests/golden
  float learning_rate = 0;
  std::span<const tessera_parameter> parameters;
  std::int64_t parameter_floats = 0, packed_floats = 0, packed_forward_floats = 0, optimizer_floats = 0,
               output_floats = 0, attention_floats = 0, alignment = 0;
  std::span<const char* const> layers;
  std::int64_t (*forward_bytes)(std::int64_t batch) = nullptr;
  std::int64_t (*evaluate_bytes)(std::int64_t batch) = nullptr;
  std::int64_t (*train_bytes)(std::int64_t at_once) = nullptr;
  std::int64_t (*input_gradient_bytes)(std::int64_t batch) = nullptr;
  std::int64_t (*inspect_bytes)(std::int64_t batch) = nullptr;
  const char* (*isa)() = nullptr;
  int (*pack)(const float* parameters, float* packed) = nullptr;
  int (*pack_forward)(const float* parameters, float* packed) = nullptr;
  int (*forward)(const float* parameters, const float* packed, const float* images, std::int64_t batch, float* outputs,
                 void* scratch) = nullptr;
  int (*evaluate)(const float* parameters, const float* packed, const float* images, const std::int32_t* labels,
                  std::int64_t batch, float* outputs, float* loss, void* scratch) = nullptr;
  int (*loss_and_gradients)(const float* parameters, const float* packed, const float* images,
                            const std::int32_t* labels, std::int64_t batch, std::int64_t at_once, std::uint64_t seed,
                            std::int64_t step, float* outputs, float* loss, float* gradients, void* scratch) = nullptr;
  int (*input_gradient)(const float* parameters, const float* packed, const float* images, const std::int32_t* labels,
                        std::int64_t batch, float* outputs, float* loss, float* image_gradients,
                        void* scratch) = nullptr;
  int (*inspect)(const float* parameters, const float* packed, const float* images, std::int64_t batch, float* maps,
                 float* magnitudes, void* scratch) = nullptr;
  int (*train_step)(float* parameters, float* packed, float* gradients, float* optimizer, const float* images,
                    const std::int32_t* labels, std::int64_t batch, std::int64_t at_once, std::uint64_t seed,
                    std::int64_t step, float learning_rate, float* outputs, float* loss, void* scratch) = nullptr;
};

inline void PrintTo(const EmittedModel* model, std::ostream* out) { *out << model->golden; }

}  // namespace tessera::test

/// The table of the model whose functions begin with `name` and whose macros begin with `NAME`.
#define TESSERA_EMITTED_MODEL(name, NAME, golden_folder, rate)                                                         \
  ::tessera::test::EmittedModel {                                                                                      \
    .golden = golden_folder, .learning_rate = rate, .parameters = name##_parameters,                                   \
    .parameter_floats = NAME##_PARAMETER_FLOATS, .packed_floats = NAME##_PACKED_FLOATS,                                \
    .packed_forward_floats = NAME##_PACKED_FORWARD_FLOATS, .optimizer_floats = NAME##_OPTIMIZER_FLOATS,                \
    .output_floats = NAME##_OUTPUT_FLOATS, .attention_floats = NAME##_ATTENTION_FLOATS, .alignment = NAME##_ALIGNMENT, \
    .layers = name##_layers,                                                                                           \
    .forward_bytes = [](std::int64_t b) -> std::int64_t { return NAME##_FORWARD_SCRATCH_BYTES(b); },                   \
    .evaluate_bytes = [](std::int64_t b) -> std::int64_t { return NAME##_EVALUATE_SCRATCH_BYTES(b); },                 \
    .train_bytes = [](std::int64_t b) -> std::int64_t { return NAME##_TRAIN_SCRATCH_BYTES(b); },                       \
    .input_gradient_bytes = [](std::int64_t b) -> std::int64_t { return NAME##_INPUT_GRADIENT_SCRATCH_BYTES(b); },     \
    .inspect_bytes = [](std::int64_t b) -> std::int64_t { return NAME##_INSPECT_SCRATCH_BYTES(b); },                   \
    .isa = name##_isa, .pack = name##_pack, .pack_forward = name##_pack_forward, .forward = name##_forward,            \
    .evaluate = name##_evaluate, .loss_and_gradients = name##_loss_and_gradients,                                      \
    .input_gradient = name##_input_gradient, .inspect = name##_inspect, .train_step = name##_train_step                \
  }
