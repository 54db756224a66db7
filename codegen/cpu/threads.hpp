// How a kernel is partitioned among the threads of a team, which work on one image.
#pragma once

#include "codegen/cpu/loop_nest.hpp"

namespace tessera::codegen::cpu {

/// Whose points each thread of a team has a range of.
struct Partition {
  int axis = -1;         ///< the rows of a GEMM, else the outer axis with the most points; -1: none
  bool columns = false;  ///< those of a GEMM's weights too, which then fewer threads read
  bool empty() const { return axis < 0 && !columns; }
};

/// Empty where there is too little to do.
Partition partition_of(const Values& v);
/// The ranges of a thread.
LoopBounds bounds_of(const Partition& partition, const Kernel& kernel);
/// Declares what these ranges are made of.
tree::Block declare_bounds(const Values& v, const Partition& partition);

}  // namespace tessera::codegen::cpu
