#include "codegen/cpu/threads.hpp"

#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>

#include "codegen/cpu/gemm_operands.hpp"
#include "codegen/cpu/kernel.hpp"
#include "codegen/cpu/transpose.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// Below this many points, waiting for each other takes threads longer than what they share.
constexpr std::int64_t least_shared = 1 << 15;

std::int64_t rows_of_tile(const Values& v, int a) {
  if (v.kernel.anchor == Anchor::contraction) return v.schedule.tile[a];
  return a == transposed_axis(v) ? v.target.lanes : 1;
}

bool stores_everywhere_along(const Kernel& kernel, int axis) {
  return ranges::all_of(kernel.steps, [&](const Step& s) {
    return ranges::all_of(s.stores, [&](const Step::Store& store) {
      return ranges::any_of(store.to.index, [&](const Affine& index) {
        return ranges::any_of(index.parts, [&](const Affine::Part& part) { return part.axis == axis; });
      });
    });
  });
}

int axis_to_partition(const Values& v) {
  std::vector<int> axes = v.outer_axes();
  if (v.kernel.gemm.columns >= 0 && !v.kernel.gemm.transposes) axes = {v.kernel.gemm.rows};
  int widest = -1;
  for (int a : axes) {
    const bool line = v.kernel.gemm.transposes && a == v.kernel.gemm.rows;  // its epilogue is one
    if (a < 0 || line || a == v.schedule.parallel || a == v.vector || v.kernel.axes[a].only.valid() ||
        v.kernel.axes[a].last.valid())
      continue;
    const std::int64_t extent = v.extent[a];
    if (2 * extent > 3 * rows_of_tile(v, a) && stores_everywhere_along(v.kernel, a) &&
        (widest < 0 || extent > v.extent[widest]))
      widest = a;
  }
  return widest;
}

bool partitions_columns(const Values& v) {
  const int columns = v.kernel.gemm.columns;
  if (columns < 0 || !operands_of(v).b_in_panels) return false;
  return v.extent[columns] >= 2 * v.columns_of_tile() && stores_everywhere_along(v.kernel, columns);
}

}  // namespace

Partition partition_of(const Values& v) {
  if (points_of_image(v.kernel) < least_shared) return {};
  return {axis_to_partition(v), partitions_columns(v)};
}

LoopBounds bounds_of(const Partition& p, const Kernel& kernel) {
  const std::string whose = p.columns ? "mine." : "";
  LoopBounds bounds;
  if (p.axis >= 0) bounds[p.axis] = {name(whose + "begin"), name(whose + "end"), true};
  if (p.columns) bounds[kernel.gemm.columns] = {name("mine.left"), name("mine.right"), true};
  return bounds;
}

Block declare_bounds(const Values& v, const Partition& p) {
  if (p.empty()) return {};
  const Expr rows = integer(p.axis < 0 ? 1 : v.extent[p.axis]),
             tile = integer(p.axis < 0 ? 1 : rows_of_tile(v, p.axis));
  if (!p.columns)
    return {tree::declare("const std::int64_t", "begin", call("team.begin", {rows, tile})),
            tree::declare("const std::int64_t", "end", call("team.end", {rows, tile}))};
  const int columns = v.kernel.gemm.columns;
  const std::int64_t weights = v.extent[columns] * operands_of(v).k;
  const Expr bytes = integer(weights * 4 / values_in_real(v.kernel.gemm.dtype));
  return {tree::declare("const Tiles", "mine",
                        call("team.tiles", {rows, tile, integer(v.extent[columns]), integer(v.columns_of_tile()),
                                            tree::binary(">", bytes, call("tessera_l2_bytes", {}))}))};
}

}  // namespace tessera::codegen::cpu
