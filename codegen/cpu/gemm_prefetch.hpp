// Prefetches of a GEMM: the next tile's operands while one is summed up, and the places where its results go.
#pragma once

#include <functional>

#include "codegen/cpu/gemm_operands.hpp"
#include "codegen/cpu/tile.hpp"

namespace tessera::codegen::cpu {

/// What a layer of forward has stashed for backward: it lies in DRAM.
bool is_stash(const Values& v, const Access& access);

/// Prefetches an image's values of those large tensors in scratch memory that `which` names, as far as L2 has room for
/// them. `image`: which of them; null where pointers are to an image's values already.
tree::Block prefetch_image(Values& v, const std::function<bool(const Access&)>& which, const tree::Expr& image);

/// Prefetches a part of the next panel of B with each step along k, while the rows of A go by this one; `first`: where
/// a K-block begins, null where k is not blocked.
void prefetch_panel(Values& v, tree::Block& b, const Tile& tile, const GemmOperands& g, const tree::Expr& first);
/// Prefetches the next A tile, a cache line with each step along k; a step of fewer than 16 FMAs has no slack for it.
void prefetch_rows(Values& v, tree::Block& b, const Tile& tile, const GemmOperands& g);

/// Whether a GEMM's tile takes so long that what is read and written with its sums can be prefetched meanwhile.
bool has_slack(const Values& v);
/// Whether an epilogue reads such values place for place: then each tile prefetches them itself.
bool prefetched_by_tile(const Values& v, const GemmOperands& g, const Access& access);
/// Prefetches the places where a tile's results go and, with an epilogue, the stash that it reads.
void prefetch_results(Values& v, tree::Block& b, const Tile& tile, const GemmOperands& g, bool epilogue);
/// The same of all tiles along a line whose columns are the vectors, and all that their epilogue reads along it.
void prefetch_lines(Values& v, tree::Block& b, const Tile& columns);

}  // namespace tessera::codegen::cpu
