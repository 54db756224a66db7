// What is moved between the kernels of a GPU's plan, so that less is read and written.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen::cuda {

/// Kernels that sum over the batch what lies side by side, with the same axes and an element that each reads, become
/// one, which reads it once: the gradients of a norm's weight and bias.
void merge_sums(KernelProgram& program);

}  // namespace tessera::codegen::cuda
