// NAME_cuda_program.cu: what the emitted program needs of CUDA, as the table that the runtime reads.
#pragma once

#include <string>

#include "codegen/cuda/file.hpp"

namespace tessera::codegen::cuda {

std::string emit_program(const Model& model);

}  // namespace tessera::codegen::cuda
