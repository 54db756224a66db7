#include "codegen/cpu/weight_gradient.hpp"

#include <fmt/format.h>

#include "codegen/cpu/gemm_prefetch.hpp"
#include "codegen/cpu/reduction.hpp"
#include "codegen/plan/bias_gradient.hpp"
#include "codegen/plan/gemm.hpp"
#include "codegen/plan/layout.hpp"
#include "codegen/plan/window_gradient.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// Windows{channels, {positions, ...} down, across, strides}: as the simd text declares them.
std::string windows_of(const Values& v, const WindowGradient& g) {
  const auto along = [](const ConvAxis& s) {
    return fmt::format("{{{}, {}, {}, {}, {}, {}}}", s.positions, s.taps, s.step, s.dilation, s.left_step,
                       s.right_step);
  };
  const int rows = v.kernel.gemm.rows, columns = v.kernel.gemm.columns;
  return fmt::format("Windows{{{}, {}, {}, {}, {}, {}}}", v.extent[columns], along(g.down), along(g.across),
                     v.step_of(*g.left, rows), v.step_of(*g.right, columns),
                     v.step_of(v.step(1).stores.front().to, rows));
}

WindowGradient window_gradient_of(const Values& v) {
  return *window_gradient(v.plan.layouts, v.kernel, v.kernel.gemm.rows, v.kernel.gemm.columns);
}

int batch_of(const Values& v) {
  int batch = -1;
  for (int a : v.step(0).over)
    if (v.extent[a] < 0) batch = a;
  return batch;
}

/// One call for all images.
Block gradient_of_windows(Values& v) {
  const WindowGradient g = window_gradient_of(v);
  const int batch = batch_of(v);
  for (std::size_t a = 0; a < v.extent.size(); ++a) v.set(static_cast<int>(a), nullptr);
  const Expr add = v.kernel.accumulates ? tree::binary(">", name("group.first"), integer(0)) : name("false");
  return {tree::evaluate(
      call(gradient_function(v), {name("begin"), name("end"), images(v.kernel), add, v.address(*g.left, false),
                                  integer(v.step_of(*g.left, batch)), v.address(*g.right, false),
                                  integer(v.step_of(*g.right, batch)), v.address(v.step(1).stores.front().to, true)}))};
}

}  // namespace

std::string gradient_function(const Values& v) {
  if (v.kernel.gemm.windows)
    return fmt::format("g_windows<{}, {}, {}>", windows_of(v, window_gradient_of(v)),
                       v.schedule.tile[v.kernel.gemm.rows], v.schedule.tile[v.kernel.gemm.columns]);
  if (!v.kernel.across_batch || v.kernel.gemm.columns < 0 || !reduces_one_axis(v.kernel)) return "";
  const std::int64_t columns = v.extent[v.kernel.gemm.columns];
  const std::int64_t k = operands_of(v).k;
  if (uses_tile_unit(v.kernel, v.target)) return fmt::format("t_gradient<{}, {}>", columns, k);
  if (!copies_operands(v.plan.layouts, v.kernel)) return "";
  return fmt::format("g_gradient<{}, {}, {}, {}>", columns, k, v.schedule.tile[v.kernel.gemm.rows],
                     v.schedule.tile[v.kernel.gemm.columns]);
}

Block weight_gradient(Values& v) {
  if (v.kernel.gemm.windows) return gradient_of_windows(v);
  const int rows = v.kernel.gemm.rows, columns = v.kernel.gemm.columns;
  const GemmOperands g = operands_of(v);
  std::vector<int> loops;
  for (int a : v.outer_axes())
    if (a != rows && a != columns) loops.push_back(a);
  const int batch = batch_of(v);
  const auto of_image = [&](const Operand& operand) {
    return integer(step_along(operand.access, v.plan.layouts[operand.access.tensor], batch));
  };
  const Access& to = v.step(1).stores.front().to;
  const Expr to_row = integer(step_along(to, v.plan.layouts[to.tensor], rows));
  return nest(v, loops, {}, [&](Block& b) {
    for (int a : {rows, columns, batch}) v.set(a, nullptr);
    if (g.k_axis >= 0) v.set(g.k_axis, nullptr);
    if (uses_tile_unit(v.kernel, v.target)) {
      const Expr whole = call("group_of", {name("batch"), integer(batch_chunks), integer(0)});
      b.push_back(tree::evaluate(
          call(gradient_function(v),
               {name("begin"), name("end"), v.kernel.accumulates ? name("group") : whole, v.address(g.a.access, false),
                of_image(g.a), integer(g.a.across), integer(g.a.along), v.address(g.b.access, false), of_image(g.b),
                integer(g.b.along), v.address(to, true), to_row})));
      return;
    }
    const Expr image = name(v.axis_name(batch));
    v.set(batch, image);
    Block body = prefetch_image(v, [](const Access&) { return true; }, image);
    const Expr before = v.kernel.accumulates ? name("group.first") + image : image;
    const Expr biases = v.kernel.fused.kind == Fused::Kind::bias_gradient
                            ? name(v.argument(v.kernel.fused.part(Fused::Role::bias).steps[1].stores[0].to, true))
                            : name("nullptr");
    body.push_back(tree::evaluate(call(
        gradient_function(v),
        {name("begin"), name("end"), tree::binary(">", before, integer(0)), v.address(g.a.access, false),
         integer(g.a.along), v.address(g.b.access, false), integer(g.b.along), v.address(to, true), to_row, biases})));
    b.push_back(
        tree::loop(v.axis_name(batch), integer(0), tree::binary("<", image, images(v.kernel)), 1, std::move(body)));
  });
}

}  // namespace tessera::codegen::cpu
