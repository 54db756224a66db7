// Gradients of biases beside the GEMMs that read the same, which may sum them on the way.
#pragma once

#include "codegen/plan/plan.hpp"

namespace tessera::codegen::cuda {

/// A sum over the batch of what a product multiplies comes right behind it, and says that the product may make it: the
/// gradient of a bias behind that of the weight.
void order_operand_reductions(KernelProgram& program);
/// So many places further on in the running order; -1: no kernel.
int neighbour_of(const KernelProgram& program, int kernel, int places);
/// The kernel right behind a product that sums this factor of it, an expression; -1: none.
int reduction_behind(const Plan& plan, int product, ExprId factor);

}  // namespace tessera::codegen::cuda
