// What is moved between the kernels of a GPU's plan, so that less is read and written.
#pragma once

#include "codegen/cuda/tile.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen::cuda {

/// Kernels that sum over the batch what lies side by side, with the same axes and an element that each reads, become
/// one, which reads it once: the gradients of a norm's weight and bias.
void merge_sums(KernelProgram& program);

/// `a` does what `b`, sums over the same axes, does, too.
void take_in(Kernel& a, const Kernel& b);
/// Drops expressions that nobody needs.
void keep_needed(Kernel& k);

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

/// Sums over all rows of what a kernel of rows has of each element anyway, such as the gradients of a norm's weight and
/// bias in the norm's backward pass: each of its blocks makes partial sums, in steps of the kernel behind those of a
/// row, and the kernel that made them before adds them up.
void sums_in_rows(KernelProgram& program, const Tiles& tiles);
/// Whether a step is such a sum.
bool sums_rows(const Kernel& k, const Step& step);
/// How many of a kernel's steps, the first ones, are not.
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
/// What a norm's backward pass reads of the forward one's result, it computes again from the norm's input, which is
/// kept in the place of that result, and from numbers of each row.
void keep_inputs_of_norms(KernelProgram& program, const Tiles& tiles);
/// The gradients that linear layers hand to norms as they are, in bf16: those are stored as such.
void round_gradients_of_norms(KernelProgram& program, const Tiles& tiles);

/// Whether a tensor holds the partial sums that some kernel of rows makes.
bool is_partial(const KernelProgram& program, int tensor);

}  // namespace tessera::codegen::cuda
