#include "codegen/cuda/operand_reduction.hpp"

#include <algorithm>
#include <range/v3/algorithm/count.hpp>
#include <range/v3/algorithm/count_if.hpp>
#include <range/v3/algorithm/find.hpp>

#include "codegen/cuda/merge_sums.hpp"
#include "codegen/cuda/plan.hpp"
#include "codegen/kernels/query.hpp"

namespace tessera::codegen::cuda {

namespace {

const Kernel& kernel_of(const KernelProgram& program, int k) { return program.kernels[k]; }

bool reduces_an_operand(const KernelProgram& program, const Kernel& product, const Kernel& sum, bool left) {
  if (tasks_of(product) != Tasks::chunks || !product.fused.empty()) return false;
  if (!is_plain_sum(program, sum) || ranges::count_if(sum.steps, [](const Step& s) { return s.reduces; }) != 1)
    return false;
  const Operands f = operands_of(product, program.precision);
  if (!f.a.valid() || !f.groups.empty()) return false;
  const Expression& factor = expression_of(product, left ? f.a : f.b);
  const std::vector<int>& across = left ? f.rows : f.columns;
  // What is a part of a tensor, a slice, is summed by itself.
  return factor.kind == Expression::Kind::load && across.size() == 1 && !axes_along(factor.access).empty() &&
         sums_operand(product, factor.access, across[0], f.depth, sum);
}

}  // namespace

void order_operand_reductions(KernelProgram& program) {
  const auto sums_any = [&](const Item& product, const Item& sum) {
    return reduces_an_operand(program, kernel_of(program, product.kernel), kernel_of(program, sum.kernel), true) ||
           reduces_an_operand(program, kernel_of(program, product.kernel), kernel_of(program, sum.kernel), false);
  };
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i].kernel < 0) continue;
      const Item moved = order[i];
      const Kernel& sum = kernel_of(program, moved.kernel);
      for (std::size_t j = i + 1; j < order.size() && order[j].kernel >= 0; ++j) {
        const Kernel& product = kernel_of(program, order[j].kernel);
        if (meet(stored_by(sum), tensors_of(product)) || meet(loaded_by(sum), stored_by(product))) break;
        if (!sums_any(order[j], moved)) continue;
        order.erase(order.begin() + static_cast<std::ptrdiff_t>(i));
        order.insert(order.begin() + static_cast<std::ptrdiff_t>(j), moved);
        --i;
        break;
      }
    }
  for (const std::vector<Item>& order : program.order)
    for (std::size_t i = 1; i < order.size(); ++i)
      if (order[i - 1].kernel >= 0 && order[i].kernel >= 0 && sums_any(order[i - 1], order[i]))
        program.kernels[order[i].kernel].by_gemm = true;
}

int neighbour_of(const KernelProgram& program, int kernel, int places) {
  for (const std::vector<Item>& order : program.order) {
    const auto at = ranges::find(order, kernel, &Item::kernel) - order.begin() + places;
    if (at - places == static_cast<std::ptrdiff_t>(order.size())) continue;
    return at < 0 || at >= static_cast<std::ptrdiff_t>(order.size()) ? -1 : order[at].kernel;
  }
  return -1;
}

int reduction_behind(const Plan& plan, int product, ExprId factor) {
  const int behind = neighbour_of(plan.program, product, 1);
  if (behind < 0) return -1;
  const Kernel &k = kernel_of(plan.program, product), &sum = kernel_of(plan.program, behind);
  if (!sum.by_gemm) return -1;
  const bool left = operands_of(k, plan.program.precision).a == factor;
  if (!reduces_an_operand(plan.program, k, sum, left)) return -1;
  // Both have memory for their partial sums at a time.
  const auto has = [](const Stage& stage, int kernel) { return ranges::count(stage.items, kernel, &Item::kernel) > 0; };
  for (const Stage& stage : plan.stages[k.region])
    if (has(stage, product) && has(stage, behind)) return behind;
  return -1;
}

}  // namespace tessera::codegen::cuda
