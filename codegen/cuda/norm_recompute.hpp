// Norms' inputs are kept for the backward pass instead of their results.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen::cuda {

/// What a norm's backward pass reads of the forward one's result, it computes again from the norm's input, which is
/// kept in the place of that result, and from numbers of each row.
void recompute_norms(KernelProgram& program);

}  // namespace tessera::codegen::cuda
