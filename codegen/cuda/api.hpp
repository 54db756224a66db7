// The C API over the programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "codegen/cuda/file.hpp"

namespace tessera::codegen::cuda {

/// What a program's kernels and grids have room for.
using LargestBatches = std::map<ProgramKind, std::int64_t>;
/// The functions of NAME_cuda.h. Each refuses batches above the largest of its program.
std::string api(const Model& model, const LargestBatches& largest);

}  // namespace tessera::codegen::cuda
