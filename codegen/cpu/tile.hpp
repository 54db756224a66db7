// Pieces of a GEMM's register tile.
#pragma once

#include <cstdint>
#include <utility>

#include "codegen/cpu/values.hpp"
#include "codegen/plan/gemm.hpp"

namespace tessera::codegen::cpu {

/// The pieces of a GEMM's columns and rows.
std::pair<Piece, Piece> pieces_of(const Kernel& gemm, const Tile& tile);
/// Columns, in values, of a piece of the vector axis.
std::int64_t tile_vectors(const Values& v, const Piece& piece);

/// The place moves along an axis by a loop's variable.
void move(Values& v, int axis, const char* by);

}  // namespace tessera::codegen::cpu
