// GEMMs in bf16 and int8 by a matrix unit or dot products: functions of the simd text compute tiles of 32 columns and
// as many rows as the plan says.
#pragma once

#include "codegen/cpu/gemm_operands.hpp"
#include "codegen/cpu/loop_nest.hpp"
#include "codegen/cpu/tile.hpp"

namespace tessera::codegen::cpu {

/// Before all tiles: packs what is the same for them all. Of an axis in `bounds` a block has a part.
tree::Block before_tiles(Values& v, const GemmOperands& g, const LoopBounds& bounds);
/// Before the tiles of one piece of an axis: packs its rows or its columns, which are the same for them all.
tree::Block before_tiles_of(Values& v, const GemmOperands& g, const LoopBounds& bounds, int axis, const Piece& piece);
/// One tile, and what is made of its sums.
void tile_by_matrix_unit(Values& v, tree::Block& b, const Tile& tile, const GemmOperands& g, const LoopBounds& bounds);

}  // namespace tessera::codegen::cpu
