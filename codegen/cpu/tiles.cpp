// Products of bf16 and int8 by tiles of 32 columns and as many rows as the plan says: functions of the simd text
// compute them.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/cpu/emitter.hpp"
#include "codegen/passes/columns.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

Emitter::Factor Emitter::factor(bool right) const {
  const Expression& product = expression(step(0).value);
  Factor f;
  for (int e : {product.a, product.b})  // the left one may be computed on its way
    if (expression(e).kind == Expression::Kind::load && (lane_step(expression(e).access) != 0) == right)
      f.access = expression(e).access;
  const Layout& layout = plan.layouts[f.access.tensor];
  const int axis = right ? kernel.product.columns : kernel.product.rows;
  if (axis >= 0) f.across = step_along(f.access, layout, axis);
  if (depth_axis() >= 0) f.along = step_along(f.access, layout, depth_axis());
  return f;
}

int Emitter::depth_axis() const {
  for (int a : step(0).over)
    if (extent_[a] >= 0) return a;
  return -1;
}

Block Emitter::before_tiles() {
  Block b;
  if (kernel.product.rows < 0) {
    b.push_back(tree::evaluate(call("t_configure", {integer(1)})));
    if (packs_left()) pack_left(b, 1);
  }
  if (!packs_whole_right()) return b;
  const Factor right = factor(true);
  const std::int64_t columns = extent_[kernel.product.columns];
  const std::int64_t panels = whole_tiles(columns) / tile_side;
  b.push_back(
      tree::declare("alignas(64) bf16", fmt::format("panels[{}]", panels * tile_side * whole_depth()), nullptr));
  set(kernel.product.columns, nullptr);
  const Expr column = name("column");
  b.push_back(
      tree::loop("column", integer(0), tree::binary("<", column, integer(columns)), tile_side,
                 {tree::evaluate(
                     call("t_pack_right", {address(right.access, false) + column, integer(right.along),
                                           tree::least(integer(tile_side), tree::binary("-", integer(columns), column)),
                                           integer(depth()), name("panels") + column * whole_depth()}))}));
  return b;
}

void Emitter::pack_left(Block& b, std::int64_t rows) {
  const Factor left = factor(false);
  b.push_back(
      tree::declare("alignas(64) bf16", fmt::format("rows[{}]", std::max(rows, tile_side) * whole_depth()), nullptr));
  b.push_back(
      tree::evaluate(call("t_pack_left", {address(left.access, false), integer(left.across), integer(left.along),
                                          integer(rows), integer(depth()), name("rows"), integer(whole_depth())})));
}

Block Emitter::before_tiles_of(int axis, const Piece& piece) {
  Block b;
  if (axis == kernel.product.rows) {
    if (packs_left()) pack_left(b, piece.points);
  } else if (axis == kernel.product.columns && packs_right() && !packs_whole_right()) {
    const Factor right = factor(true);
    b.push_back(tree::declare("alignas(64) bf16", fmt::format("panel[{}]", tile_side * whole_depth()), nullptr));
    b.push_back(
        tree::evaluate(call("t_pack_right", {address(right.access, false), integer(right.along),
                                             integer(columns_of_piece(piece)), integer(depth()), name("panel")})));
  }
  return b;
}

std::int64_t Emitter::columns_of_piece(const Piece& piece) const {
  return (piece.points - 1) * target_.lanes + (piece.tail ? piece.tail : target_.lanes);
}

void Emitter::product_by_tiles(Block& b, const Tile& tile) {
  const auto [across, down] = pieces_of(tile);
  const Factor left = factor(false), right = factor(true);
  Expr rows = packs_left() ? name("rows") : address(left.access, false);
  Expr panel = name("panel");
  if (!packs_right()) panel = address(right.access, false);
  if (packs_whole_right()) panel = name("panels") + along(kernel.product.columns, whole_depth());
  // Weights lie far away: while one panel goes through the tiles, the next one comes.
  Expr ahead = name("nullptr");
  std::int64_t lines = 0;
  if (const int r = kernel.product.rows; !packs_right() && r >= 0) {
    const std::int64_t high = schedule_.tile[r];
    const std::int64_t blocks = (extent_[r] + high - 1) / high;
    lines = (tile_side + blocks - 1) / blocks;
    ahead = panel + integer(tile_side * panel_depth(kernel.product.factors, depth())) +
            this->along(r, lines * whole_depth() / high);
  }
  b.push_back(tree::declare(kernel.product.factors == Element::int8 ? "alignas(64) std::int32_t" : "alignas(64) real",
                            fmt::format("sums[{}]", down.points * tile_side), nullptr));
  b.push_back(
      tree::evaluate(call("t_product", {name("sums"), integer(down.points), integer(columns_of_piece(across)),
                                        std::move(rows), integer(packs_left() ? whole_depth() : left.across),
                                        std::move(panel), integer(depth()), std::move(ahead), integer(lines)})));
  store_in_loops(b, tile);
}

std::string Emitter::gradient_name() const {
  if (!kernel.across_batch || kernel.product.columns < 0 || !sums_along_one_axis(kernel)) return "";
  const std::int64_t columns = extent_[kernel.product.columns];
  if (by_tiles()) return fmt::format("t_gradient<{}, {}>", columns, depth());
  if (!copies_factors(plan.layouts, kernel)) return "";
  return fmt::format("g_gradient<{}, {}, {}, {}>", columns, depth(), schedule_.tile[kernel.product.rows],
                     schedule_.tile[kernel.product.columns]);
}

Block Emitter::gradient() {
  const int rows = kernel.product.rows, columns = kernel.product.columns;
  const Factor left = factor(false), right = factor(true);
  std::vector<int> loops;
  for (int a : outer_axes())
    if (a != rows && a != columns) loops.push_back(a);
  int batch = -1;
  for (int a : step(0).over)
    if (extent_[a] < 0) batch = a;
  const auto of_image = [&](const Factor& f) {
    return integer(step_along(f.access, plan.layouts[f.access.tensor], batch));
  };
  const Access& to = step(1).stores.front().to;
  const Expr to_row = integer(step_along(to, plan.layouts[to.tensor], rows));
  return nest(loops, [&](Block& b) {
    for (int a : {rows, columns, batch}) set(a, nullptr);
    if (depth_axis() >= 0) set(depth_axis(), nullptr);
    if (by_tiles()) {
      const Expr whole = call("group_of", {name("batch"), integer(batch_chunks), integer(0)});
      b.push_back(
          tree::evaluate(call(gradient_name(), {name("begin"), name("end"), kernel.goes_on ? name("group") : whole,
                                                address(left.access, false), of_image(left), integer(left.across),
                                                integer(left.along), address(right.access, false), of_image(right),
                                                integer(right.along), address(to, true), to_row})));
      return;
    }
    const Expr image = name(axis_name(batch));
    set(batch, image);
    Block body = fetches([](const Access&) { return true; }, image);
    const Expr before = kernel.goes_on ? name("group.first") + image : image;
    const Expr biases = kernel.fused.kind == Fused::Kind::bias_gradient
                            ? name(argument(kernel.fused.part(Fused::Role::bias).steps[1].stores[0].to, true))
                            : name("nullptr");
    body.push_back(tree::evaluate(call(
        gradient_name(),
        {name("begin"), name("end"), tree::binary(">", before, integer(0)), address(left.access, false),
         integer(left.along), address(right.access, false), integer(right.along), address(to, true), to_row, biases})));
    b.push_back(tree::loop(axis_name(batch), integer(0), tree::binary("<", image, images()), 1, std::move(body)));
  });
}

}  // namespace tessera::codegen::cpu
