#include "codegen/cpu/gemm_operands.hpp"

#include <algorithm>

#include "codegen/plan/gemm.hpp"

namespace tessera::codegen::cpu {

std::int64_t points_of_block(const Values& v, int axis) {
  const auto at = v.most_of_block.find(axis);
  return at == v.most_of_block.end() ? v.extent[axis] : std::min(at->second, v.extent[axis]);
}

GemmOperands operands_of(const Values& v) {
  GemmOperands g;
  for (int a : v.step(0).over)
    if (v.extent[a] >= 0) {
      g.k_axis = a;
      g.k = points_of_block(v, a);
      break;
    }
  const Expression& multiply = v.expression(v.step(0).value);
  for (ExprId e : {multiply.a, multiply.b}) {
    if (v.expression(e).kind != Expression::Kind::load) continue;
    const Access& access = v.expression(e).access;
    const bool is_b = v.lane_step(access) != 0;
    const int axis = is_b ? v.kernel.gemm.columns : v.kernel.gemm.rows;
    (is_b ? g.b : g.a) = {access, axis >= 0 ? v.step_of(access, axis) : 0,
                          g.k_axis >= 0 ? v.step_of(access, g.k_axis) : 0};
  }
  // Values of bf16 on a thread's stack: 256 KiB of one copy, 320 KiB of all.
  constexpr std::int64_t most_of_b = 1 << 17, most = 5 << 15;
  const Gemm& product = v.kernel.gemm;
  const DType factors = factors_on(v.kernel, v.target);
  g.whole_k = padded_k(factors, g.k);
  g.b_in_panels = v.in_panels(g.b.access);
  g.packs_a = g.a.along != 1 || factors != product.dtype;
  const std::int64_t all_of_b = whole_tiles(points_of_block(v, product.columns)) * g.whole_k;
  g.packs_all_of_b = g.packs_a && g.packs_b() && all_of_b <= most_of_b;
  const std::int64_t rows = product.rows < 0 ? tile_side : std::max(v.schedule.tile[product.rows], tile_side);
  const std::int64_t of_b = g.packs_all_of_b ? all_of_b : g.packs_b() ? tile_side * g.whole_k : 0;
  g.packs_k_blocks = factors == DType::bf16 && (g.packs_a ? rows * g.whole_k : 0) + of_b > most;
  g.packs_all_of_b = g.packs_all_of_b && !g.packs_k_blocks;
  return g;
}

}  // namespace tessera::codegen::cpu
