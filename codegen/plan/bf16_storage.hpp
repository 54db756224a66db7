// What GEMMs read is stored as bf16.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

/// Stores as bf16 what GEMMs read, where they round it: in the place of the fp32 values where nobody else
/// reads them (but copies, and the sums that are gradients of biases), else beside them. What backward needs of each
/// layer is kept as bf16 only.
void store_as_bf16(KernelProgram& program);

/// Stores a step's caches as bf16: they take half of the memory, of which a step reads all that lies before its
/// position.
void store_caches_as_bf16(KernelProgram& program);

}  // namespace tessera::codegen
