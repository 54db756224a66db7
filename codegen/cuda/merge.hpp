// What is moved between the kernels of a GPU's plan, so that less is read and written.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen::cuda {

/// Kernels that sum over the batch what lies side by side, with the same axes and an element that each reads, become
/// one, which reads it once: the gradients of a norm's weight and bias.
void merge_sums(KernelProgram& program);

/// What a kernel of rows stores that is made of a product's result and other elements at the same place (the residual
/// connection before a norm), the product stores in the place of its result, which nobody needs any more.
void sum_in_products(KernelProgram& program);

}  // namespace tessera::codegen::cuda
