// An emitted model as the tests call it, in float or in double.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/model.hpp"

namespace tessera::test {

/// The sizes and entry points of NAME.h.
template <class Real>
struct GeneratedModel {
  std::string name;  ///< of the case
  std::span<const tessera_parameter> parameters;
  std::int64_t parameter_reals, packed_reals;

  std::int64_t (*forward_scratch_bytes)(std::int64_t batch);
  std::int64_t (*evaluate_scratch_bytes)(std::int64_t batch);
  std::int64_t (*train_scratch_bytes)(std::int64_t at_once);
  std::int64_t (*input_gradient_scratch_bytes)(std::int64_t batch);

  const char* (*isa)();
  int (*pack)(const Real* parameters, Real* packed);
  int (*forward)(const Real* parameters, const Real* packed, const Real* images, std::int64_t batch, Real* outputs,
                 void* scratch);
  int (*evaluate)(const Real* parameters, const Real* packed, const Real* images, const std::int32_t* labels,
                  std::int64_t batch, Real* outputs, Real* loss, void* scratch);
  int (*loss_and_gradients)(const Real* parameters, const Real* packed, const Real* images, const std::int32_t* labels,
                            std::int64_t batch, std::int64_t at_once, std::uint64_t seed, std::int64_t step,
                            Real* outputs, Real* loss, Real* gradients, void* scratch);
  int (*input_gradient)(const Real* parameters, const Real* packed, const Real* images, const std::int32_t* labels,
                        std::int64_t batch, Real* outputs, Real* loss, Real* image_gradients, void* scratch);
};

/// All models of generated_cases.hpp, in its order; defined by the sources that write_generated writes.
std::span<const GeneratedModel<double>> generated_doubles();  ///< scalar kernels only
std::span<const GeneratedModel<float>> generated_floats();    ///< scalar, avx2 and avx512
/// Of random models alone.
std::span<const GeneratedModel<float>> generated_bf16s();  ///< scalar and avx2
std::span<const GeneratedModel<float>> generated_int8s();  ///< scalar and avx2
std::span<const GeneratedModel<float>> generated_int4s();  ///< scalar and avx2

}  // namespace tessera::test
