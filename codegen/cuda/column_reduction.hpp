// Sums over rows by the kernel of rows that has what is summed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codegen/plan/launch.hpp"

namespace tessera::codegen::cuda {

/// Sums over all rows of what a kernel of rows has of each element anyway, such as the gradients of a norm's weight and
/// bias in the norm's backward pass: each of its blocks makes partial sums, in steps of the kernel behind those of a
/// row, and the kernel that made them before adds them up. `blocks`: of each such kernel; 0: as many as suit it.
void fuse_column_reductions(KernelProgram& program, std::int64_t blocks);
/// How many of a kernel's steps, the first ones, are no such sums.
std::size_t steps_of_row(const Kernel& k);
/// None: a count of 0.
ColumnReductions column_reductions_of(const KernelProgram& program, const Kernel& k);

/// Whether a tensor holds the partial sums that some kernel of rows makes.
bool is_partial(const KernelProgram& program, TensorId tensor);

}  // namespace tessera::codegen::cuda
