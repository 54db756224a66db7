// A dropout mask is drawn once, where the gradient of a softmax needs it twice.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

/// Where the gradient of a softmax is one of what has been dropped from, a row's sum and its result both need each
/// value times its factor of dropout: the pass that sums stores them in the result's place.
void draw_mask_once(KernelProgram& program);

}  // namespace tessera::codegen
