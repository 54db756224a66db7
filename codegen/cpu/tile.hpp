// A register tile: the points whose sums are accumulators of one piece of code.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "codegen/cpu/values.hpp"
#include "codegen/plan/gemm.hpp"

namespace tessera::codegen::cpu {

/// A run of points along one axis that one piece of code handles: how many, and how many lanes the last vector has.
struct Piece {
  std::int64_t points = 0;  ///< tile points (vectors along the vector axis)
  int tail = 0;             ///< lanes of the last vector; 0: all
};
/// Points that are summed at once: a piece of each tiled axis.
using Tile = std::vector<std::pair<int, Piece>>;

/// The pieces of a GEMM's columns and rows.
std::pair<Piece, Piece> pieces_of(const Kernel& gemm, const Tile& tile);
/// Columns, in values, of a piece of the vector axis.
std::int64_t tile_vectors(const Values& v, const Piece& piece);

/// Calls f once for each point of the tile, with v's place and tail set to it.
void for_points(Values& v, const Tile& tile, const std::function<void()>& f);
/// The place moves along an axis by a loop's variable.
void move(Values& v, int axis, const char* by);

}  // namespace tessera::codegen::cpu
