// Gradients that norms read, in bf16.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen::cuda {

/// The gradients that linear layers hand to norms as they are, in bf16: those are stored as such.
void round_gradients_of_norms(KernelProgram& program);

}  // namespace tessera::codegen::cuda
