// Sums over the batch that read the same become one kernel.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen::cuda {

/// Kernels that sum over the batch what lies side by side, with the same axes and an element that each reads, become
/// one, which reads it once: the gradients of a norm's weight and bias.
void merge_sums(KernelProgram& program);

/// `a` does what `b`, sums over the same axes, does, too.
void fuse_sums(Kernel& a, const Kernel& b);

/// Whether a kernel is sums over the batch, side by side in memory, and then stores of what is made of them.
bool is_plain_sum(const KernelProgram& program, const Kernel& k);

}  // namespace tessera::codegen::cuda
