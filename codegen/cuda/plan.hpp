// The plan of a program for a GPU. The same memory planner as for a CPU, read in another way: there an image's values
// lie together, image after image, because threads take images; here each tensor lies together for the whole batch,
// because a kernel takes all images at once, and the rows of a matrix product run on from one image to the next.
#pragma once

#include "codegen/plan/plan.hpp"

namespace tessera::codegen::cuda {

/// Every tensor as declared, the batch outermost and dense. A buffer's offset of an image's arena, in the planner's
/// words, is here per image of the batch: where_of says where it begins.
Plan plan_for_gpu(KernelProgram program);

/// Where a buffer begins, in reals from the start of the scratch memory.
Extent where_of(const Plan& plan, const Buffer& buffer);
/// From one slot to the next.
Extent slot_of(const Buffer& buffer);

}  // namespace tessera::codegen::cuda
