// The plan of a program for a GPU. The same memory planner as for a CPU, read in another way: there an image's values
// lie together, image after image, because threads take images; here each tensor lies together for the whole batch,
// because a kernel takes all images at once, and the rows of a GEMM run on from one image to the next.
#pragma once

#include <vector>

#include "codegen/cuda/tile.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen::cuda {

/// A and B of a GEMM: a sum of products over what one of them does not know.
struct Operands {
  ExprId a, b;  ///< none: the kernel is no GEMM worth a tile
  std::vector<int> rows, columns, groups, depth;
};
/// In the order of the kernel's axes.
Operands operands_of(const Kernel& kernel, Precision precision);
/// Axes in the kernel's order, but the batch before all others.
std::vector<int> batch_first(const Kernel& kernel, std::vector<int> axes);

/// Every tensor as declared, the batch outermost, and dense but for long rows of bf16, which begin on multiples of 16
/// bytes. A buffer's offset of an image's arena, in the planner's words, is here per image of the batch: where_of says
/// where it begins. With products of bf16, all that they read is stored as bf16: values by whoever computes them (as
/// store_as_bf16 says), parameters as a copy of their arena, which `update` writes beside it.
/// `tiles`: those that somebody asks for.
Plan plan_for_gpu(KernelProgram program, const PassOptions& options = {}, const Tiles& tiles = {});
/// What plan_for_gpu changes in the kernels first. Throws Error where a pass is told what it does not take.
std::vector<Pass> cuda_passes(const PassOptions& options = {});

/// How a tensor lies, the batch outermost.
Layout layout_on_gpu(const Tensor& tensor);

/// Whether a stored factor's numbers are neighbours along this axis, and begin on multiples of eight.
bool vectorisable_along(const KernelProgram& program, const Kernel& kernel, ExprId factor, int along);

/// Where a buffer begins, in reals from the start of the scratch memory.
Extent where_of(const Plan& plan, const Buffer& buffer);
/// From one slot to the next, in reals.
Extent slot_of(const Buffer& buffer);

}  // namespace tessera::codegen::cuda
