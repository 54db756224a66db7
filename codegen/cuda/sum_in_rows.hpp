// Sums over rows by the kernel of rows that has what is summed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen::cuda {

/// Sums over all rows of what a kernel of rows has of each element anyway, such as the gradients of a norm's weight and
/// bias in the norm's backward pass: each of its blocks makes partial sums, in steps of the kernel behind those of a
/// row, and the kernel that made them before adds them up. `blocks`: of each such kernel; 0: as many as suit it.
void sums_in_rows(KernelProgram& program, std::int64_t blocks);
/// How many of a kernel's steps, the first ones, are no such sums.
std::size_t steps_of_row(const Kernel& k);
struct RowSums {
  int count = 0;                                           ///< sums of an element; 0: none
  std::int64_t length = 0;                                 ///< of a row, filled up to whole warps
  std::int64_t blocks = 0;                                 ///< of the kernel, whatever the batch is
  int warps = 0;                                           ///< of a block
  int resident = 0;                                        ///< blocks on a multiprocessor
  int with_registers = 0;                                  ///< so many have registers there
  bool in_halves = false;                                  ///< a row has too much for a warp's registers
  std::int64_t numbers() const { return count * length; }  ///< of a warp, in shared memory
};
RowSums row_sums_of(const KernelProgram& program, const Kernel& k);

/// Whether a tensor holds the partial sums that some kernel of rows makes.
bool is_partial(const KernelProgram& program, TensorId tensor);

}  // namespace tessera::codegen::cuda
