// Steps of a model of sequences: how far they read their caches.
#pragma once

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

/// Positions that are read and computed together: as many as the interleaved accumulators of the widest vectors take,
/// so that the order of a sum is that of all positions.
inline constexpr std::int64_t position_block = 64;

/// Has a step's kernels read caches, and what is computed of them for each position, up to the block of its position:
/// Axis::last. Behind it scores are masked and weights are 0, which `stepped` has made sure of. Nothing changes where
/// there are less than two blocks, or where a kernel does anything else along the positions.
void stop_at_position(KernelProgram& program);

}  // namespace tessera::codegen
