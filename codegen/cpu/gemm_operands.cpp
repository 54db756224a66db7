#include "codegen/cpu/gemm_operands.hpp"

namespace tessera::codegen::cpu {

GemmOperands operands_of(const Values& v) {
  GemmOperands g;
  for (int a : v.step(0).over)
    if (v.extent[a] >= 0) {
      g.k_axis = a;
      g.k = v.extent[a];
      break;
    }
  const Expression& multiply = v.expression(v.step(0).value);
  for (ExprId e : {multiply.a, multiply.b}) {
    if (v.expression(e).kind != Expression::Kind::load) continue;
    const Access& access = v.expression(e).access;
    const bool is_b = v.lane_step(access) != 0;
    const int axis = is_b ? v.kernel.product.columns : v.kernel.product.rows;
    (is_b ? g.b : g.a) = {access, axis >= 0 ? v.step_of(access, axis) : 0,
                          g.k_axis >= 0 ? v.step_of(access, g.k_axis) : 0};
  }
  constexpr std::int64_t most_on_stack = 1 << 17;  // values: 256 KiB of a thread's stack
  g.whole_k = whole_steps(v.kernel.product.factors, g.k);
  g.b_in_panels = v.in_panels(g.b.access);
  g.packs_a = g.a.along != 1;
  g.packs_all_of_b =
      g.packs_a && g.packs_b() && whole_tiles(v.extent[v.kernel.product.columns]) * g.whole_k <= most_on_stack;
  return g;
}

}  // namespace tessera::codegen::cpu
