// Weight gradients, and the bias gradients that come with them.
#include "codegen/plan/bias_gradient.hpp"

#include <range/v3/algorithm/find_if.hpp>

#include "codegen/kernels/query.hpp"
#include "codegen/passes/gemm_operands.hpp"
#include "codegen/plan/gemm.hpp"
#include "codegen/plan/layout.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

namespace {

/// The factor of a weight gradient's product that does, or does not, know the columns; null: it is no load.
const Access* factor_of(const Layouts& layouts, const Kernel& k, bool right) {
  const Expression& product = k.expressions[k.steps.front().value];
  for (ExprId e : {product.a, product.b}) {
    const Expression& x = k.expressions[e];
    if (x.kind != Expression::Kind::load) continue;
    const Layout& layout = layouts[x.access.tensor];
    if ((step_along(x.access, layout, k.gemm.columns) != 0) == right) return &x.access;
  }
  return nullptr;
}

/// Whether `sum` is the gradient of the bias beside a weight: it adds up what the weight's gradient has as its left
/// factor, and stores that alone.
bool is_bias_of(const KernelProgram& program, const Kernel& sum, const Kernel& weight, const Access& left) {
  if (!sum.across_batch || sum.gemm.columns >= 0 || sum.steps.size() != 2 || sum.steps[1].stores.size() != 1 ||
      !sum.steps[1].over.empty() || !sums_operand(weight, left, weight.gemm.rows, weight.steps[0].over, sum))
    return false;
  const Step::Store& store = sum.steps[1].stores[0];
  const auto row = ranges::find_if(sum.axes, [](const Axis& a) { return !a.inner; }) - sum.axes.begin();
  return expression_of(sum, store.value).kind == Expression::Kind::local &&
         program.tensors[store.to.tensor].storage == Storage::gradient &&
         store.to.index == std::vector<Affine>{{0, {{static_cast<int>(row), 1}}}};
}

}  // namespace

bool copies_operands(const Layouts& layouts, const Kernel& k) {
  if (!k.across_batch || k.gemm.columns < 0 || k.gemm.windows || !reduces_one_axis(k)) return false;
  std::int64_t depth = 1;
  int along = -1;
  for (int a : k.steps.front().over)
    if (k.axes[a].dim.known()) {
      along = a;
      depth = k.axes[a].dim.value();
    }
  const Access *left = factor_of(layouts, k, false), *right = factor_of(layouts, k, true);
  const auto step = [&](const Access& a, int axis) { return step_along(a, layouts[a.tensor], axis); };
  return along >= 0 && depth >= least_n && left && right && step(*left, k.gemm.rows) == 1 &&
         step(*right, k.gemm.columns) == 1;
}

void fuse_bias_gradients(KernelProgram& program) {
  Layouts layouts;
  for (const Tensor& t : program.tensors) layouts.push_back(layout_for_gemms(t));
  std::set<int> gone;
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 1; i < order.size(); ++i) {
      const int before = order[i - 1].kernel;  // by itself it would run just before: gradients end in the same order
      if (before < 0 || order[i].kernel < 0) continue;
      Kernel& weight = program.kernels[order[i].kernel];
      const Kernel& bias = program.kernels[before];
      if (weight.gemm.dtype != DType::real || !copies_operands(layouts, weight) ||
          !is_bias_of(program, bias, weight, *factor_of(layouts, weight, false)))
        continue;
      weight.fused = {Fused::Kind::bias_gradient, {Fused::Role::bias}, {bias}};
      gone.insert(before);
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(--i));
    }
  remove_kernels(program, gone);
}

}  // namespace tessera::codegen
