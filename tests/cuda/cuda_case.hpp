// The CUDA file of a model of tests/kernels/generated_cases.hpp, as the tests call it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/model.hpp"

namespace tessera::test {

/// The sizes and entry points of NAME_cuda.h.
struct CudaCase {
  std::string name;
  std::span<const tessera_parameter> parameters;
  std::int64_t parameter_floats;
  bool by_warpgroups;  ///< it has kernels for sm_90a

  std::int64_t packed_bytes;
  std::int64_t (*forward_scratch_bytes)(std::int64_t batch);
  std::int64_t (*train_scratch_bytes)(std::int64_t batch);
  std::int64_t (*input_gradient_scratch_bytes)(std::int64_t batch);

  int (*pack)(const float* parameters, void* packed, void* stream);
  int (*forward)(const float* parameters, const void* packed, const float* images, std::int64_t batch, float* outputs,
                 void* scratch, void* stream);
  int (*loss_and_gradients)(const float* parameters, const void* packed, const float* images,
                            const std::int32_t* labels, const tessera_cuda_step* step, std::int64_t batch,
                            float* outputs, float* loss, float* gradients, void* scratch, void* stream);
  int (*input_gradient)(const float* parameters, const void* packed, const float* images, const std::int32_t* labels,
                        std::int64_t batch, float* outputs, float* loss, float* image_gradients, void* scratch,
                        void* stream);
};

/// All models of generated_cases.hpp, in its order; defined by the sources that write_cases writes.
std::span<const CudaCase> cuda_cases();

}  // namespace tessera::test
