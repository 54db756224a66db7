// What is made of a GEMM's sums: the stores behind its reduction.
#pragma once

#include "codegen/cpu/tile.hpp"

namespace tessera::codegen::cpu {

/// The stores of the steps behind the reduction, at v's place.
void stores(Values& v, tree::Block& b);
/// Whether they take so many instructions that they must not stand there once for each vector of a tile: they would not
/// fit the instruction cache, and compilers would call functions instead.
bool expensive_epilogue(const Kernel& gemm);
/// The same as a loop over the tile, whose sums lie in the array `sums`, `width` values a row. `earlier`: a variable
/// that is not zero where they go on from what is stored.
void stores_in_loops(Values& v, tree::Block& b, const Tile& tile, std::int64_t width, const char* earlier = nullptr);
/// The same where what is stored has the rows as neighbours, once for all rows: their transposed sums lie in the array
/// `lines`, one line a column, so many values from one to the next.
void stores_of_lines(Values& v, tree::Block& b, const Tile& columns, std::int64_t apart);

}  // namespace tessera::codegen::cpu
