// Kernels that do no more than copy and transpose.
#pragma once

#include "codegen/cpu/loop_nest.hpp"

namespace tessera::codegen::cpu {

/// The axis along which such a kernel reads contiguous values, where it writes contiguous ones along the vector axis:
/// blocks of whole vectors are transposed. -1: it is no such copy.
int transposed_axis(const Values& v);
/// The body of such a kernel.
tree::Block transposed_copy(Values& v, int axis, const LoopBounds& bounds);

}  // namespace tessera::codegen::cpu
