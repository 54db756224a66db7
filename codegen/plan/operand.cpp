#include "codegen/plan/operand.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/kernels/query.hpp"

namespace tessera::codegen {

namespace {

/// What no step needs any more reads nothing.
void forget_unused(Kernel& k) {
  std::set<ExprId> needed;
  for (const Step& s : k.steps) {
    if (s.reduces) reach(k, s.value, needed);
    for (const Step::Store& store : s.stores) reach(k, store.value, needed);
  }
  for (const ExprId e : k.expressions.ids())
    if (!needed.contains(e)) k.expressions[e] = {};
}

}  // namespace

OperandKernel kernel_of_operand(const Kernel& k, ExprId factor) {
  std::set<ExprId> needed;
  reach(k, factor, needed);
  const std::set<int> used = axes_below(k, factor);
  std::vector<int> axes(used.begin(), used.end());
  const auto rank = [&](int a) {
    const Axis& axis = k.axes[a];
    return !axis.dim.known() ? 0 : a == k.gemm.columns ? 3 : axis.inner ? 2 : 1;
  };
  std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return rank(a) < rank(b); });

  OperandKernel made;
  made.kernel.name = k.name + "_factor";
  made.kernel.region = k.region;
  std::map<int, int> axis_of;
  std::map<ExprId, ExprId> expression_of;
  for (int a : axes) {
    axis_of[a] = static_cast<int>(made.kernel.axes.size());
    made.kernel.axes.push_back(k.axes[a]);
    made.kernel.axes.back().inner = false;
    made.shape.push_back(made.kernel.axes.back().dim);
    made.stored.index.push_back({0, {{axis_of[a], 1}}});
    made.read.index.push_back({0, {{a, 1}}});
  }
  for (ExprId e : needed) {
    Expression x = k.expressions[e];
    for (ExprId* operand : {&x.a, &x.b, &x.c})
      if (operand->valid()) *operand = expression_of.at(*operand);
    for_each_index(x, [&](Affine& index) {
      for (Affine::Part& part : index.parts) part.axis = axis_of.at(part.axis);
      std::sort(index.parts.begin(), index.parts.end());
    });
    expression_of[e] = push(made.kernel, std::move(x));
  }
  made.value = expression_of.at(factor);
  return made;
}

void run_before(KernelProgram& program, std::size_t product, ExprId factor, OperandKernel made) {
  Kernel& k = program.kernels[product];
  Expression load;
  load.kind = Expression::Kind::load;
  load.access = std::move(made.read);
  k.expressions[factor] = std::move(load);
  forget_unused(k);
  std::vector<Item>& order = program.order[k.region];
  const auto at = std::find_if(order.begin(), order.end(),
                               [&](const Item& item) { return item.kernel == static_cast<int>(product); });
  order.insert(at, {static_cast<int>(program.kernels.size()), -1});
  program.kernels.push_back(std::move(made.kernel));
}

}  // namespace tessera::codegen
