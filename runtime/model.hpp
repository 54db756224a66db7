// What the runtime knows of a model: its emitted C API, as a table of functions and sizes that the emitted program
// fills in.
#pragma once

#include <cstdint>
#include <span>
#include <string>

// The same definition stands in every emitted header, so that several models can be used in one file.
#ifndef TESSERA_PARAMETER_DEFINED
#define TESSERA_PARAMETER_DEFINED
extern "C" {
typedef struct tessera_parameter {
  const char* name; /* the checkpoint key */
  int32_t rank;
  int32_t decay; /* 1 where weight decay applies */
  int64_t shape[8];
  int64_t offset; /* in floats, from the start of the parameters, and of the gradients alike */
} tessera_parameter;
}
#endif

namespace tessera::runtime {

/// Sizes and entry points of one emitted model. Every function returns 0 or an error code that `error` puts into words.
/// All memory is the caller's, aligned to `alignment` bytes. `batch` may be any number from 1 on.
struct Model {
  std::string name;                    ///< "vit_mnist"
  std::uint64_t declaration_hash = 0;  ///< changes with the declaration
  std::span<const tessera_parameter> parameters;
  std::int64_t parameter_floats = 0;  ///< of the parameters, and of the gradients
  std::int64_t optimizer_floats = 0;  ///< of the optimiser's state (zeros at the start)
  std::int64_t image_shape[3]{};      ///< channels, height, width
  std::int64_t classes = 0;           ///< numbers in a row of outputs
  std::int64_t alignment = 64;
  bool outputs_are_probabilities = false;  ///< the rows of outputs already sum to one
  std::string summary;                     ///< the shape table, as text

  std::int64_t (*forward_scratch_bytes)(std::int64_t batch) = nullptr;
  std::int64_t (*evaluate_scratch_bytes)(std::int64_t batch) = nullptr;
  std::int64_t (*train_scratch_bytes)(std::int64_t batch) = nullptr;

  const char* (*error)(int code) = nullptr;
  const char* (*isa)() = nullptr;  ///< the kernels in use: "scalar", "avx2", "avx512"
  int (*init)(float* parameters, std::uint64_t seed) = nullptr;
  /// outputs [batch, classes] of images [batch, C, H, W].
  int (*forward)(const float* parameters, const float* images, std::int64_t batch, float* outputs,
                 void* scratch) = nullptr;
  /// As forward, and the mean loss over the batch.
  int (*evaluate)(const float* parameters, const float* images, const std::int32_t* labels, std::int64_t batch,
                  float* outputs, float* loss, void* scratch) = nullptr;
  int (*loss_and_gradients)(const float* parameters, const float* images, const std::int32_t* labels,
                            std::int64_t batch, float* outputs, float* loss, float* gradients, void* scratch) = nullptr;
  /// One optimiser step in place; `step` counts from 1.
  int (*update)(float* parameters, const float* gradients, float* optimizer, std::int64_t step,
                float learning_rate) = nullptr;
  /// loss_and_gradients and update in one call.
  int (*train_step)(float* parameters, float* gradients, float* optimizer, const float* images,
                    const std::int32_t* labels, std::int64_t batch, std::int64_t step, float learning_rate,
                    float* outputs, float* loss, void* scratch) = nullptr;
};

/// The declared training recipe.
struct Recipe {
  std::int64_t batch = 128;
  std::int64_t epochs = 5;
  double learning_rate = 0.005;
  std::uint64_t seed = 1;
  double input_mean = 0, input_deviation = 1;  ///< a pixel in [0, 1] enters as (pixel - mean) / deviation
};

}  // namespace tessera::runtime
