// The C API over the programs, and the kernels that make the update's numbers from the step.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/cuda/file.hpp"

namespace tessera::codegen::cuda {

/// The kernels that stand beside the plan's: the update's numbers, the next step.
std::string update_kernels(const Model& model);
/// The functions of NAME_cuda.h. Batches above `largest_batch` are refused.
std::string api(const Model& model, std::int64_t largest_batch);

}  // namespace tessera::codegen::cuda
