// What GEMMs with a parameter read is stored as int8.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

/// Stores as int8 what GEMMs with a parameter read, by a kernel before the GEMM: each row's values less their zero
/// point, over a scale of its own. The epilogue multiplies by the scales of row and column, and corrects by the row's
/// zero point times the column's sum.
void quantize_to_int8(KernelProgram& program);

}  // namespace tessera::codegen
