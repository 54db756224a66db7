#include "codegen/cpu/gemm_prefetch.hpp"

#include <algorithm>
#include <set>

#include "codegen/plan/gemm.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// Reals of a tensor that are prefetched at once: a few pages, or more.
constexpr std::int64_t least_fetched = 1 << 12;

}  // namespace

bool is_stash(const Values& v, const Access& access) {
  const Tensor& t = v.tensor(access);
  return t.storage == Storage::scratch && t.slots > 1 && t.region != v.kernel.region;
}

Block prefetch_image(Values& v, const std::function<bool(const Access&)>& which, const Expr& image) {
  Block b;
  std::set<TensorId> seen;
  for (const Expression& e : v.kernel.expressions) {
    if (e.kind != Expression::Kind::load) continue;
    const Tensor& t = v.plan.program.tensors[e.access.tensor];
    const Layout& layout = v.plan.layouts[e.access.tensor];
    const std::int64_t reals = layout.size.per_batch;
    if (t.storage != Storage::scratch || !which(e.access) || reals < least_fetched ||
        !seen.insert(e.access.tensor).second)
      continue;
    Expr first = name(v.argument(e.access, false));
    for (std::size_t d = 0; image && d < t.shape.size(); ++d)
      if (!t.shape[d].known()) first = first + image * layout.stride[d];
    b.push_back(tree::evaluate(call("v_fetch", {first, integer(reals)})));
  }
  return b;
}

namespace {

/// How many images there are is not known when the panel is read: the first two tiles of them, or one where it is
/// narrow, ask for their parts of the next panel, or of the next K-block, which lies behind this one.
void prefetch_panel_for_images(Values& v, Block& b, const Tile& tile, const GemmOperands& g) {
  constexpr std::int64_t line = 16, tiles = 2;
  const auto [columns, rows] = std::pair{v.kernel.gemm.columns, v.kernel.gemm.rows};
  if (factors_on(v.kernel, v.target) != DType::real || !reduces_one_axis(v.kernel)) return;
  const std::int64_t width = v.columns_of_tile(), high = v.schedule.tile[rows];
  const std::int64_t lines = (width + tiles * line - 1) / (tiles * line), part = lines * line,
                     parts = (width + part - 1) / part;
  const Expr image = v.place[rows].variable, k = v.along(g.k_axis, 1);
  const Expr turn = parts > 1 ? tree::binary("/", image, integer(high)) : integer(0);
  const Expr ahead = v.along(columns, g.k) + (v.schedule.depth ? (k + integer(v.schedule.depth)) * width + turn * part
                                                               : integer(width * g.k) + turn * (g.k * part) + k * part);
  const Expr whole = tree::binary("==", pieces_of(v.kernel, tile).second.count(), integer(high));
  b.push_back(
      tree::when(tree::binary("&&", whole, tree::binary("<", image, integer(parts * high))),
                 {tree::evaluate(call("v_fetch_near", {name(v.argument(g.b.access, false)), ahead, integer(lines)}))}));
}

}  // namespace

void prefetch_panel(Values& v, Block& b, const Tile& tile, const GemmOperands& g, const Expr& first) {
  const auto [columns, rows] = std::pair{v.kernel.gemm.columns, v.kernel.gemm.rows};
  if (columns < 0 || rows < 0 || v.target.lanes == 1) return;
  if (!g.b_in_panels || v.kernel.gemm.transposes) return;
  if (v.extent[rows] < 0) return prefetch_panel_for_images(v, b, tile, g);
  const Layout& layout = v.plan.layouts[g.b.access.tensor];
  const std::int64_t depth = layout.stride[0], width = v.columns_of_tile();
  const std::int64_t high = v.schedule.tile[rows];
  const std::int64_t tiles = (v.extent[rows] + high - 1) / high;
  const std::int64_t part = (width + tiles - 1) / tiles;
  if (part > 16) return;  // a line would not be enough
  const std::int64_t at_once = v.schedule.depth ? v.schedule.depth : depth;
  Expr ahead = v.along(columns, depth) + integer(width * depth) + v.along(rows, part * at_once / high);
  if (first) ahead = ahead + first * (width - part);
  for (std::size_t d = 1; d < g.b.access.index.size(); ++d)
    for (const Affine::Part& p : g.b.access.index[d].parts)
      ahead = ahead + v.along(p.axis, p.coefficient * layout.stride[d] * part);
  b.push_back(tree::evaluate(call("v_fetch_line", {name(v.argument(g.b.access, false)), ahead})));
  // What follows in a panel that L1 does not hold, soon enough for L2 to load it.
  constexpr std::int64_t reals_of_l1 = 10 << 10, line = 16, steps = 8;
  if (at_once * width <= reals_of_l1 || factors_on(v.kernel, v.target) != DType::real) return;
  const Expr there = v.offset_of(g.b.access) + integer(steps * width);
  b.push_back(tree::evaluate(
      call("v_fetch_near", {name(v.argument(g.b.access, false)), there, integer((width + line - 1) / line)})));
}

void prefetch_rows(Values& v, Block& b, const Tile& tile, const GemmOperands& g) {
  constexpr std::int64_t line = 16, least_sums = 16;
  const auto [columns, rows] = std::pair{v.kernel.gemm.columns, v.kernel.gemm.rows};
  if (columns < 0 || rows < 0 || v.extent[rows] < 0 || v.target.lanes == 1 || !g.b_in_panels) return;
  if (!v.place[rows].variable) return;  // these are the last ones
  const std::int64_t high = v.schedule.tile[rows];
  if (factors_on(v.kernel, v.target) != DType::real || !reduces_one_axis(v.kernel) || g.a.along != 1 ||
      high * v.columns_of_tile() < least_sums * v.target.lanes)
    return;
  const std::vector<Place> kept = v.place;
  v.set(g.k_axis, nullptr);
  Expr ahead = v.offset_of(g.a.access) + integer(high * g.a.across);
  v.place = kept;
  const Expr place = v.along(g.k_axis, 1);
  if (!v.schedule.depth && g.a.across == g.k)  // they lie side by side
    ahead = ahead + place * high;
  else if (high <= line)
    ahead =
        ahead + tree::binary("%", place, integer(line)) * g.a.across + tree::binary("/", place, integer(line)) * line;
  else
    return;
  const tree::Statement prefetch = tree::evaluate(call("v_fetch_line", {name(v.argument(g.a.access, false)), ahead}));
  const Piece down = pieces_of(v.kernel, tile).second;
  b.push_back(down.parameter.empty() ? prefetch
                                     : tree::when(tree::binary("==", down.count(), integer(high)), {prefetch}));
}

bool has_slack(const Values& v) {
  return !uses_tile_unit(v.kernel, v.target) || v.target.matrix_unit != MatrixUnit::amx;
}

bool prefetched_by_tile(const Values& v, const GemmOperands& g, const Access& access) {
  if (!has_slack(v) || v.target.lanes == 1 || v.lane_step(access) != 1) return false;
  return access.tensor != g.b.access.tensor || access.index != g.b.access.index;
}

void prefetch_results(Values& v, Block& b, const Tile& tile, const GemmOperands& g, bool epilogue) {
  const int columns = v.kernel.gemm.columns, rows = v.kernel.gemm.rows;
  if (columns < 0 || v.kernel.across_batch || v.target.lanes == 1) return;
  const auto [across, down] = pieces_of(v.kernel, tile);
  const Expr count = down.count(), width = integer(tile_vectors(v, across));
  const auto prefetch = [&](const Access& access, bool stored) {
    const Expr stride = integer(down.one() ? 0 : v.step_of(access, rows));
    b.push_back(tree::evaluate(call("v_fetch_rows", {v.address(access, stored), count, stride, width})));
  };
  for (const Step::Store& store : v.step(1).stores)
    if (v.lane_step(store.to) == 1 && !v.on_stack(store.to)) prefetch(store.to, true);
  if (!epilogue) return;
  for (const Expression& e : v.kernel.expressions)
    if (e.kind == Expression::Kind::load && is_stash(v, e.access) && prefetched_by_tile(v, g, e.access))
      prefetch(e.access, false);
}

void prefetch_lines(Values& v, Block& b, const Tile& columns) {
  const int axis = v.kernel.gemm.columns, rows = v.kernel.gemm.rows;
  const Expr count = integer(tile_vectors(v, pieces_of(v.kernel, columns).first));
  std::set<std::string> seen;
  const auto prefetch = [&](const Access& access, bool stored) {
    if (v.step_of(access, rows) != 1 || v.on_stack(access)) return;
    const Expr first = v.address(access, stored), stride = integer(v.step_of(access, axis));
    if (seen.insert(tree::print(first)).second)
      b.push_back(tree::evaluate(call("v_fetch_rows", {first, count, stride, integer(v.extent[rows])})));
  };
  v.set(rows, nullptr);
  for (const Step::Store& store : v.step(1).stores) {
    each_load(v, store.value, [&](const Access& read) { prefetch(read, false); });
    prefetch(store.to, true);
  }
}

}  // namespace tessera::codegen::cpu
