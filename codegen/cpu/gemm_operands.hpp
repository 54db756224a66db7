// What a GEMM's two operands are in memory, and which of them a matrix unit needs packed: known before any text is.
#pragma once

#include <cstdint>

#include "codegen/cpu/values.hpp"

namespace tessera::codegen::cpu {

/// An operand in memory.
struct Operand {
  Access access;            ///< of no tensor where it is computed on its way
  std::int64_t across = 0;  ///< from one row of A, or column of B, to the next, in values
  std::int64_t along = 0;   ///< from one k to the next
};

struct GemmOperands {
  Operand a, b;
  int k_axis = -1;              ///< besides the batch; -1: there is none
  std::int64_t k = 1;           ///< its extent, or the most that a block has of it
  std::int64_t whole_k = 1;     ///< filled up to whole steps of a matrix unit
  bool b_in_panels = false;     ///< B is a packed parameter
  bool packs_a = false;         ///< a matrix unit would have to have A packed first
  bool packs_all_of_b = false;  ///< all panels of B are packed at once, before the rows of A are
  bool packs_k_blocks = false;  ///< k is so long that copies of it all would not fit a thread's stack
  bool packs_b() const { return !b_in_panels; }
};

/// Points of an axis that is not the batch: those of a block, at most, where a block has a part of it.
std::int64_t points_of_block(const Values& v, int axis);
/// Of a kernel that is a GEMM.
GemmOperands operands_of(const Values& v);

}  // namespace tessera::codegen::cpu
