#include "codegen/kernels/kernel.hpp"

#include <algorithm>

namespace tessera::codegen {

Kernel& Fused::part(Role role) {
  return parts.at(static_cast<std::size_t>(std::find(roles.begin(), roles.end(), role) - roles.begin()));
}
const Kernel& Fused::part(Role role) const { return const_cast<Fused*>(this)->part(role); }
bool Fused::has(Role role) const { return std::find(roles.begin(), roles.end(), role) != roles.end(); }

int axis_along(const Affine& index) {
  return index.offset || index.parts.size() != 1 || index.parts[0].coefficient != 1 ? -1 : index.parts[0].axis;
}

std::vector<int> axes_along(const Access& access) {
  std::vector<int> axes;
  for (const Affine& index : access.index) {
    const int axis = axis_along(index);
    if (axis < 0) return {};
    axes.push_back(axis);
  }
  return axes;
}

bool needs(const Kernel& kernel, ExprId e, ExprId part) {
  if (!e.valid() || e == part) return e.valid();
  const Expression& x = kernel.expressions[e];
  return x.kind == Expression::Kind::op &&
         (needs(kernel, x.a, part) || needs(kernel, x.b, part) || needs(kernel, x.c, part));
}

std::string suffix_of(const KernelProgram& program) {
  const ProgramTraits& traits = traits_of(program.kind);
  return "_" + (program.name == traits.name ? std::string(traits.short_name) : program.name);
}

void reach(const Kernel& kernel, ExprId e, std::set<ExprId>& seen) {
  if (!e.valid() || !seen.insert(e).second) return;
  const Expression& x = kernel.expressions[e];
  if (x.kind == Expression::Kind::op || x.kind == Expression::Kind::index_equals || x.kind == Expression::Kind::keep)
    for (ExprId operand : {x.a, x.b, x.c}) reach(kernel, operand, seen);
}

ExprId push(Kernel& kernel, Expression e) { return kernel.expressions.add(std::move(e)); }

ExprId push_op(Kernel& kernel, graph::Op op, ExprId a, ExprId b) {
  Expression e;
  e.kind = Expression::Kind::op, e.op = op, e.a = a, e.b = b;
  return push(kernel, std::move(e));
}

ExprId push_constant(Kernel& kernel, double value) {
  Expression e;
  e.value = value;
  return push(kernel, std::move(e));
}

ExprId push_load(Kernel& kernel, Access access) {
  Expression e;
  e.kind = Expression::Kind::load, e.access = std::move(access);
  return push(kernel, std::move(e));
}

ExprId push_local(Kernel& kernel, int step) {
  Expression e;
  e.kind = Expression::Kind::local, e.step = step;
  return push(kernel, std::move(e));
}

ExprId replaced(Kernel& kernel, ExprId e, ExprId part, ExprId by) {
  if (e == part) return by;
  if (!needs(kernel, e, part)) return e;
  Expression x = kernel.expressions[e];
  x.a = replaced(kernel, x.a, part, by);
  if (x.b.valid()) x.b = replaced(kernel, x.b, part, by);
  if (x.c.valid()) x.c = replaced(kernel, x.c, part, by);
  return push(kernel, std::move(x));
}

void keep_for_store(Kernel& kernel, Step& sum, ExprId part, Step::Store& store) {
  sum.stores.push_back({store.to, part});
  store.value = replaced(kernel, store.value, part, push_load(kernel, store.to));
}

void remove_kernels(KernelProgram& program, const std::set<int>& gone) {
  std::vector<Kernel>& kernels = program.kernels;
  std::vector<int> number(kernels.size());
  std::vector<Kernel> kept;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    number[k] = static_cast<int>(kept.size());
    if (!gone.contains(static_cast<int>(k))) kept.push_back(std::move(kernels[k]));
  }
  kernels = std::move(kept);
  for (std::vector<Item>& order : program.order)
    for (Item& item : order)
      if (item.kernel >= 0) item.kernel = number[item.kernel];
}

Tasks tasks_of(const Kernel& kernel) {
  if (kernel.across_batch && kernel.gemm.columns >= 0) return Tasks::rows;
  if (kernel.across_batch) return kernel.axes.size() > 1 ? Tasks::chunks : Tasks::serial;
  if (kernel.gemm.rows >= 0 && !kernel.axes[kernel.gemm.rows].dim.known()) return Tasks::columns;
  const bool images = std::any_of(kernel.axes.begin(), kernel.axes.end(), [](const Axis& a) { return !a.dim.known(); });
  return images ? Tasks::images : Tasks::once;
}

}  // namespace tessera::codegen
