#include "codegen/cpu/matrix_unit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/cpu/epilogue.hpp"
#include "codegen/plan/gemm.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// How many k there are: all, or those of a block.
Expr count_k(const GemmOperands& g, const LoopBounds& bounds) {
  const auto part = bounds.find(g.k_axis);
  return part == bounds.end() ? integer(g.k) : tree::binary("-", part->second.limit, part->second.first);
}

void pack_a(Values& v, Block& b, const GemmOperands& g, const LoopBounds& bounds, const Piece& rows) {
  b.push_back(tree::declare("alignas(64) bf16", fmt::format("rows[{}]", std::max(rows.points, tile_side) * g.whole_k),
                            nullptr));
  b.push_back(
      tree::evaluate(call("t_pack_left", {v.address(g.a.access, false), integer(g.a.across), integer(g.a.along),
                                          rows.count(), count_k(g, bounds), name("rows"), integer(g.whole_k)})));
}

}  // namespace

Block before_tiles(Values& v, const GemmOperands& g, const LoopBounds& bounds) {
  Block b;
  if (const auto part = bounds.find(g.k_axis); part != bounds.end()) v.set(g.k_axis, part->second.first);
  if (v.kernel.gemm.rows < 0) {
    b.push_back(tree::evaluate(call("t_configure", {integer(1)})));
    if (g.packs_a && !g.packs_k_blocks) pack_a(v, b, g, bounds, {1, 0});
  }
  if (!g.packs_all_of_b) return b;
  const int axis = v.kernel.gemm.columns;
  const std::int64_t panels = whole_tiles(points_of_block(v, axis));
  b.push_back(tree::declare("alignas(64) bf16", fmt::format("panels[{}]", panels * g.whole_k), nullptr));
  const auto part = bounds.find(axis);
  v.set(axis, part == bounds.end() ? nullptr : part->second.first);
  const Expr column = name("column"), columns = part == bounds.end()
                                                    ? integer(v.extent[axis])
                                                    : tree::binary("-", part->second.limit, part->second.first);
  b.push_back(tree::loop(
      "column", integer(0), tree::binary("<", column, columns), tile_side,
      {tree::evaluate(call("t_pack_right", {v.address(g.b.access, false) + column, integer(g.b.along),
                                            tree::least(integer(tile_side), tree::binary("-", columns, column)),
                                            count_k(g, bounds), name("panels") + column * g.whole_k}))}));
  return b;
}

Block before_tiles_of(Values& v, const GemmOperands& g, const LoopBounds& bounds, int axis, const Piece& piece) {
  Block b;
  if (g.packs_k_blocks) return b;
  if (axis == v.kernel.gemm.rows) {
    if (g.packs_a) pack_a(v, b, g, bounds, piece);
  } else if (axis == v.kernel.gemm.columns && g.packs_b() && !g.packs_all_of_b) {
    b.push_back(tree::declare("alignas(64) bf16", fmt::format("panel[{}]", tile_side * g.whole_k), nullptr));
    b.push_back(
        tree::evaluate(call("t_pack_right", {v.address(g.b.access, false), integer(g.b.along),
                                             integer(tile_vectors(v, piece)), count_k(g, bounds), name("panel")})));
  }
  return b;
}

void tile_by_matrix_unit(Values& v, Block& b, const Tile& tile, const GemmOperands& g, const LoopBounds& bounds) {
  const auto [across, down] = pieces_of(v.kernel, tile);
  const auto sums = [&](const char* type) {
    return tree::declare(type, fmt::format("sums[{}]", down.points * tile_side), nullptr);
  };
  if (g.packs_k_blocks) {
    b.push_back(sums("alignas(64) real"));
    b.push_back(tree::evaluate(call(
        "t_product_in_blocks", {name("sums"), down.count(), integer(tile_vectors(v, across)),
                                v.address(g.a.access, false), integer(g.a.across), integer(g.a.along),
                                v.address(g.b.access, false), integer(g.packs_b() ? g.b.along : 0), integer(g.k)})));
    stores_in_loops(v, b, tile, tile_side);
    return;
  }
  Expr rows = g.packs_a ? name("rows") : v.address(g.a.access, false);
  Expr panel = name("panel");
  if (!g.packs_b()) panel = v.address(g.b.access, false);
  if (g.packs_all_of_b) {
    Expr column = v.along(v.kernel.gemm.columns, g.whole_k);
    if (const auto part = bounds.find(v.kernel.gemm.columns); part != bounds.end())
      column = tree::binary("-", column, part->second.first * g.whole_k);
    panel = name("panels") + column;
  }
  // Weights lie in DRAM: prefetch the next panel while this one goes through the tiles. Of images, whose number is not
  // known, the first tile asks for all of it.
  Expr ahead = name("nullptr"), lines = integer(0);
  if (const int r = v.kernel.gemm.rows; !g.packs_b() && r >= 0) {
    const Expr next = panel + integer(tile_side * panel_k(factors_on(v.kernel, v.target), g.k));
    const std::int64_t all = lines_of_panel(factors_on(v.kernel, v.target));
    if (v.extent[r] < 0) {
      ahead = next;
      lines = tree::choose(tree::binary("==", v.place[r].variable, integer(0)), integer(all), integer(0));
    } else {
      const std::int64_t high = v.schedule.tile[r], blocks = (v.extent[r] + high - 1) / high;
      const std::int64_t part = (all + blocks - 1) / blocks;
      ahead = next + v.along(r, part * g.whole_k / high);
      lines = integer(part);
    }
  }
  b.push_back(sums(factors_on(v.kernel, v.target) == DType::int8 ? "alignas(64) std::int32_t" : "alignas(64) real"));
  b.push_back(
      tree::evaluate(call("t_product", {name("sums"), down.count(), integer(tile_vectors(v, across)), std::move(rows),
                                        integer(g.packs_a ? g.whole_k : g.a.across), std::move(panel),
                                        count_k(g, bounds), std::move(ahead), std::move(lines)})));
  stores_in_loops(v, b, tile, tile_side, v.accumulates_from());
}

}  // namespace tessera::codegen::cpu
