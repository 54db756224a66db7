// Contractions: register tiles of accumulators, their K-blocks, and what is made of the sums.
#pragma once

#include "codegen/cpu/loop_nest.hpp"

namespace tessera::codegen::cpu {

/// What becomes of a tile's sums.
enum class SumsTo {
  epilogue,           ///< the steps behind the reduction
  partials,           ///< split-K: the array `partial`
  memory,             ///< a K-block but the last: added to what stands where the first store goes
  epilogue_of_memory  ///< the last K-block: the same, then the epilogue
};

/// The body of a kernel that is a contraction. `bounds`: of the axes that are not looped over as a whole.
tree::Block contraction(Values& v, const LoopBounds& bounds, SumsTo to = SumsTo::epilogue);

}  // namespace tessera::codegen::cpu
