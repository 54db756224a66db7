// The residual connection before a norm as an epilogue of the GEMM before it.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen::cuda {

/// What a kernel of rows stores that is made of a product's result and other elements at the same place (the residual
/// connection before a norm), the product stores in the place of its result, which nobody needs any more.
void fuse_residual_epilogues(KernelProgram& program);

}  // namespace tessera::codegen::cuda
