// Row and elementwise kernels: passes over a row, several rows at a time.
#pragma once

#include "codegen/cpu/loop_nest.hpp"

namespace tessera::codegen::cpu {

/// The body of a kernel that is no contraction. `bounds`: of the axes that are not looped over as a whole.
tree::Block passes_over_rows(Values& v, const LoopBounds& bounds);

}  // namespace tessera::codegen::cpu
