// GEMMs among the contractions: which they are, what they read packed, their micro-kernels.
#pragma once

#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// Finds the GEMMs. Where there are any, their parameters get packed copies to read, axes that run on in
/// every tensor become one, and all tensors lie as declared.
void find_gemms(KernelProgram& program);
/// Whether it has found some.
bool has_gemms(const KernelProgram& program);
/// Has the other parameters read from the packed memory as well: those who only infer then need no other.
void read_all_packed(KernelProgram& program);
/// Whether a GEMM sums over one axis besides the batch, or none.
bool reduces_one_axis(const Kernel& product);
/// What the factors of a GEMM are rounded to on a target.
DType factors_on(const Kernel& kernel, const Target& target);
/// Whether a target computes GEMMs of this operand dtype on its matrix unit, or by dot products, in tiles of 32
/// columns.
bool uses_tile_unit(DType dtype, const Target& target);
/// The same of a kernel.
bool uses_tile_unit(const Kernel& kernel, const Target& target);
/// How many vectors wide the micro-kernels of a GEMM with that N are: the same for all that read a panel.
int tile_vectors(const Target& target, std::int64_t columns, DType dtype);
/// Whether neighbours on a line share what they load for a convolution's taps, which takes a third of the registers.
/// With 16 vector registers each tap loads its own, and sums take them.
bool shares_taps(const Target& target);
Schedule gemm_schedule(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel,
                       const Target& target);

}  // namespace tessera::codegen
