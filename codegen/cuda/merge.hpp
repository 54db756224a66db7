// What is moved between the kernels of a GPU's plan, so that less is read and written.
#pragma once

#include "codegen/plan/plan.hpp"

namespace tessera::codegen::cuda {

/// Kernels that sum over the batch what lies side by side, with the same axes and an element that each reads, become
/// one, which reads it once: the gradients of a norm's weight and bias.
void merge_sums(KernelProgram& program);

/// What a kernel of rows stores that is made of a product's result and other elements at the same place (the residual
/// connection before a norm), the product stores in the place of its result, which nobody needs any more.
void sum_in_products(KernelProgram& program);

/// Whether a kernel is sums over the batch, side by side in memory, and then stores of what is made of them.
bool is_plain_sum(const KernelProgram& program, const Kernel& k);

/// A sum over the batch of what a product multiplies comes right behind it: the gradient of a bias behind that of the
/// weight.
void sums_behind_products(KernelProgram& program);
/// So many places further on in the running order; -1: no kernel.
int neighbour_of(const KernelProgram& program, int kernel, int places);
/// The kernel right behind a product that sums this factor of it, an expression; -1: none.
int sum_behind(const Plan& plan, int product, int factor);

}  // namespace tessera::codegen::cuda
