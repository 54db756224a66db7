#include "codegen/kernels/kernel.hpp"

#include <algorithm>

namespace tessera::codegen {

Kernel& Fused::part(Role role) {
  return parts.at(static_cast<std::size_t>(std::find(roles.begin(), roles.end(), role) - roles.begin()));
}
const Kernel& Fused::part(Role role) const { return const_cast<Fused*>(this)->part(role); }
bool Fused::has(Role role) const { return std::find(roles.begin(), roles.end(), role) != roles.end(); }

std::vector<int> axes_along(const Access& access) {
  std::vector<int> axes;
  for (const Affine& index : access.index) {
    if (index.offset || index.parts.size() != 1 || index.parts[0].coefficient != 1) return {};
    axes.push_back(index.parts[0].axis);
  }
  return axes;
}

bool needs(const Kernel& kernel, int e, int part) {
  if (e < 0 || e == part) return e >= 0;
  const Expression& x = kernel.expressions[e];
  return x.kind == Expression::Kind::op &&
         (needs(kernel, x.a, part) || needs(kernel, x.b, part) || needs(kernel, x.c, part));
}

std::string suffix_of(const KernelProgram& program) {
  const ProgramTraits& traits = traits_of(program.kind);
  return "_" + (program.name == traits.name ? std::string(traits.short_name) : program.name);
}

void reach(const Kernel& kernel, int e, std::set<int>& seen) {
  if (e < 0 || !seen.insert(e).second) return;
  const Expression& x = kernel.expressions[e];
  if (x.kind == Expression::Kind::op || x.kind == Expression::Kind::index_equals || x.kind == Expression::Kind::keep)
    for (int operand : {x.a, x.b, x.c}) reach(kernel, operand, seen);
}

int push(Kernel& kernel, Expression e) {
  kernel.expressions.push_back(std::move(e));
  return static_cast<int>(kernel.expressions.size()) - 1;
}

int replaced(Kernel& kernel, int e, int part, int by) {
  if (e == part) return by;
  if (!needs(kernel, e, part)) return e;
  Expression x = kernel.expressions[e];
  x.a = replaced(kernel, x.a, part, by);
  if (x.b >= 0) x.b = replaced(kernel, x.b, part, by);
  if (x.c >= 0) x.c = replaced(kernel, x.c, part, by);
  return push(kernel, std::move(x));
}

void keep_for_store(Kernel& kernel, Step& sum, int part, Step::Store& store) {
  sum.stores.push_back({store.to, part});
  Expression load;
  load.kind = Expression::Kind::load;
  load.access = store.to;
  store.value = replaced(kernel, store.value, part, push(kernel, std::move(load)));
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

}  // namespace tessera::codegen
