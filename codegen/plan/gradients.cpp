// Weight gradients, and the bias gradients that come with them.
#include <algorithm>
#include <map>
#include <range/v3/algorithm/find_if.hpp>

#include "codegen/passes/columns.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

namespace {

/// The factor of a weight gradient's product that does, or does not, know the columns; null: it is no load.
const Access* factor_of(const std::vector<Layout>& layouts, const Kernel& k, bool right) {
  const Expression& product = k.expressions[static_cast<std::size_t>(k.steps.front().value)];
  for (int e : {product.a, product.b}) {
    const Expression& x = k.expressions[static_cast<std::size_t>(e)];
    if (x.kind != Expression::Kind::load) continue;
    const Layout& layout = layouts[static_cast<std::size_t>(x.access.tensor)];
    if ((step_along(x.access, layout, k.product.columns) != 0) == right) return &x.access;
  }
  return nullptr;
}

/// Whether two accesses of two kernels run through a tensor alike, and which of the second one's axes is which of the
/// first one's.
bool alike(const Kernel& k, const Access& a, const Kernel& other, const Access& b, std::map<int, int>& axes) {
  if (a.tensor != b.tensor || a.shift != b.shift || a.index.size() != b.index.size()) return false;
  for (std::size_t d = 0; d < a.index.size(); ++d) {
    const Affine &x = a.index[d], &y = b.index[d];
    if (x.offset != y.offset || x.parts.size() != y.parts.size()) return false;
    for (std::size_t i = 0; i < x.parts.size(); ++i) {
      const int mine = x.parts[i].axis, its = y.parts[i].axis;
      if (x.parts[i].coefficient != y.parts[i].coefficient || axes.try_emplace(its, mine).first->second != mine ||
          k.axes[static_cast<std::size_t>(mine)].dim != other.axes[static_cast<std::size_t>(its)].dim)
        return false;
    }
  }
  return true;
}

/// Whether `sum` adds up a weight gradient's left factor over all that its products are summed over: it is the gradient
/// of the bias beside that weight.
bool is_bias_of(const KernelProgram& program, const Kernel& sum, const Kernel& weight, const Access& left) {
  if (sum.region != weight.region || !sum.across_batch || sum.product.columns >= 0 || sum.steps.size() != 2 ||
      !sum.steps[0].reduces || sum.steps[0].reduction != Reduction::sum || sum.steps[1].stores.size() != 1)
    return false;
  const Expression& value = sum.expressions[static_cast<std::size_t>(sum.steps[0].value)];
  const Step::Store& store = sum.steps[1].stores[0];
  if (value.kind != Expression::Kind::load || !sum.steps[1].over.empty() ||
      sum.expressions[static_cast<std::size_t>(store.value)].kind != Expression::Kind::local ||
      program.tensors[static_cast<std::size_t>(store.to.tensor)].storage != Storage::gradient)
    return false;
  std::map<int, int> axes;
  if (!alike(weight, left, sum, value.access, axes) || axes.size() != sum.axes.size()) return false;
  const auto row = ranges::find_if(axes, [&](const auto& pair) { return pair.second == weight.product.rows; });
  if (row == axes.end() || store.to.index.size() != 1 || store.to.index[0] != Affine{0, {{row->first, 1}}})
    return false;
  std::vector<int> over;
  for (int a : sum.steps[0].over) over.push_back(axes.at(a));
  return std::is_permutation(over.begin(), over.end(), weight.steps[0].over.begin(), weight.steps[0].over.end());
}

}  // namespace

bool copies_factors(const std::vector<Layout>& layouts, const Kernel& k) {
  if (!k.across_batch || k.product.columns < 0 || !sums_along_one_axis(k)) return false;
  std::int64_t depth = 1;
  int along = -1;
  for (int a : k.steps.front().over)
    if (k.axes[static_cast<std::size_t>(a)].dim.known()) {
      along = a;
      depth = k.axes[static_cast<std::size_t>(a)].dim.value();
    }
  const Access *left = factor_of(layouts, k, false), *right = factor_of(layouts, k, true);
  const auto step = [&](const Access& a, int axis) {
    return step_along(a, layouts[static_cast<std::size_t>(a.tensor)], axis);
  };
  return along >= 0 && depth >= least_columns && left && right && step(*left, k.product.rows) == 1 &&
         step(*right, k.product.columns) == 1;
}

void sum_biases_with_weights(KernelProgram& program) {
  std::vector<Layout> layouts;
  for (const Tensor& t : program.tensors) layouts.push_back(layout_for_products(t));
  std::set<int> gone;
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 1; i < order.size(); ++i) {
      const int before = order[i - 1].kernel;  // by itself it would run just before: gradients end in the same order
      if (before < 0 || order[i].kernel < 0) continue;
      Kernel& weight = program.kernels[static_cast<std::size_t>(order[i].kernel)];
      const Kernel& bias = program.kernels[static_cast<std::size_t>(before)];
      if (weight.product.factors != Element::real || !copies_factors(layouts, weight) ||
          !is_bias_of(program, bias, weight, *factor_of(layouts, weight, false)))
        continue;
      weight.fused.push_back(bias);
      gone.insert(before);
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(--i));
    }
  remove_kernels(program, gone);
}

}  // namespace tessera::codegen
