// A factor of a GEMM that becomes a value of its own.
#pragma once

#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// A kernel that computes a factor, without its steps yet: the batch outermost; innermost what vectors lie along, which
/// are the columns, else what is summed over.
struct OperandKernel {
  Kernel kernel;
  ExprId value;            ///< the factor, among its expressions
  std::vector<Dim> shape;  ///< of its axes
  Access stored, read;     ///< of all of it: by this kernel, and by the product; the tensor is to be filled in
};
OperandKernel kernel_of_operand(const Kernel& product, ExprId factor);

/// Has the kernel run before the product, which loads the factor (as `made.read` says) and computes it no more.
void run_before(KernelProgram& program, std::size_t product, ExprId factor, OperandKernel made);

}  // namespace tessera::codegen
