// Kernels that store constants and nothing else, as the zeros around a padded map.
#pragma once

#include "codegen/cpu/loop_nest.hpp"

namespace tessera::codegen::cpu {

bool is_fill(const Values& v);
/// The body of such a kernel: axes whose points lie equally far apart in memory are one run, which one call fills.
tree::Block fill(Values& v, const LoopBounds& bounds);

}  // namespace tessera::codegen::cpu
