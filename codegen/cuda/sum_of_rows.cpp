// Sums over the batch of what a weight's gradient multiplies, such as the gradient of a bias: the product sums it by
// the way, on its way through shared memory.
#include <algorithm>
#include <range/v3/algorithm/count.hpp>
#include <range/v3/algorithm/count_if.hpp>
#include <range/v3/algorithm/find.hpp>

#include "codegen/cuda/attention_parts.hpp"
#include "codegen/cuda/merge.hpp"

namespace tessera::codegen::cuda {

namespace {

const Kernel& kernel_of(const KernelProgram& program, int k) { return program.kernels[static_cast<std::size_t>(k)]; }

/// Whether `sum` adds up, over all that the product sums over, what this factor of it is.
bool sums_factor(const Kernel& product, int factor, const std::vector<int>& across, const std::vector<int>& depth,
                 const Kernel& sum) {
  const Expression &multiplied = expression_of(product, factor), &summed = expression_of(sum, sum.steps[0].value);
  if (multiplied.kind != Expression::Kind::load || summed.kind != Expression::Kind::load) return false;
  if (multiplied.access.tensor != summed.access.tensor || multiplied.access.shift != summed.access.shift) return false;
  const std::vector<int> of_product = axes_along(multiplied.access), of_sum = axes_along(summed.access);
  if (of_product.empty() || of_product.size() != of_sum.size() || depth.size() != sum.steps[0].over.size())
    return false;
  std::size_t points = 0, summed_over = 0;
  for (std::size_t d = 0; d < of_sum.size(); ++d) {
    const bool inner = sum.axes[static_cast<std::size_t>(of_sum[d])].inner;
    if (!ranges::count(inner ? depth : across, of_product[d])) return false;
    ++(inner ? summed_over : points);
  }
  // One axis of points: then there is but one order of them.
  return points == 1 && across.size() == 1 && summed_over == depth.size() &&
         ranges::count_if(sum.axes, [](const Axis& a) { return !a.inner; }) == 1;
}

bool sums_a_factor(const KernelProgram& program, const Kernel& product, const Kernel& sum, bool left) {
  if (product.region != sum.region || tasks_of(product) != Tasks::chunks || !product.fused.empty()) return false;
  if (!is_plain_sum(program, sum) || ranges::count_if(sum.steps, [](const Step& s) { return s.reduces; }) != 1)
    return false;
  const Factors f = factors_of(product, program.precision);
  if (f.left < 0 || !f.groups.empty()) return false;
  return sums_factor(product, left ? f.left : f.right, left ? f.rows : f.columns, f.depth, sum);
}

}  // namespace

void sums_behind_products(KernelProgram& program) {
  if (program.precision != Precision::bf16) return;
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i].kernel < 0) continue;
      const Item moved = order[i];
      const Kernel& sum = kernel_of(program, moved.kernel);
      for (std::size_t j = i + 1; j < order.size() && order[j].kernel >= 0; ++j) {
        const Kernel& product = kernel_of(program, order[j].kernel);
        if (meet(stored_by(sum), tensors_of(product)) || meet(loaded_by(sum), stored_by(product))) break;
        if (!sums_a_factor(program, product, sum, true) && !sums_a_factor(program, product, sum, false)) continue;
        order.erase(order.begin() + static_cast<std::ptrdiff_t>(i));
        order.insert(order.begin() + static_cast<std::ptrdiff_t>(j), moved);
        --i;
        break;
      }
    }
}

int neighbour_of(const KernelProgram& program, int kernel, int places) {
  for (const std::vector<Item>& order : program.order) {
    const auto at = ranges::find(order, kernel, &Item::kernel) - order.begin() + places;
    if (at - places == static_cast<std::ptrdiff_t>(order.size())) continue;
    return at < 0 || at >= static_cast<std::ptrdiff_t>(order.size()) ? -1 : order[static_cast<std::size_t>(at)].kernel;
  }
  return -1;
}

int sum_behind(const Plan& plan, int product, int factor) {
  const int behind = neighbour_of(plan.program, product, 1);
  if (behind < 0) return -1;
  const Kernel &k = kernel_of(plan.program, product), &sum = kernel_of(plan.program, behind);
  const bool left = factors_of(k, plan.program.precision).left == factor;
  if (!sums_a_factor(plan.program, k, sum, left)) return -1;
  // Both have memory for their partial sums at a time.
  const auto has = [](const Stage& stage, int kernel) { return ranges::count(stage.items, kernel, &Item::kernel) > 0; };
  for (const Stage& stage : plan.stages[static_cast<std::size_t>(k.region)])
    if (has(stage, product) && has(stage, behind)) return behind;
  return -1;
}

}  // namespace tessera::codegen::cuda
