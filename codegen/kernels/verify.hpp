// What must hold of kernels before they are planned.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

/// Throws Error with one sentence when a kernel names what does not exist, indexes past a dim, uses an axis out of its
/// scope, writes what is the caller's, or does not stand once in the running order. That what it reads is there is
/// checked with the plan.
void verify(const KernelProgram& program);

}  // namespace tessera::codegen
