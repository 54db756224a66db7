// Constant folding: what inference computes of parameters alone is computed once, when they are packed.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

/// Takes the kernels out of a program of inference that depend on parameters and tables alone, and puts them into its
/// `folded` program. What the others read of them lies in the packed memory, of a repeated block once for each layer:
/// at most as many reals as there are parameters, so that what would take more is computed in each call as before, the
/// largest values first.
void fold_constants(KernelProgram& program);

}  // namespace tessera::codegen
