// Values times dropout's factors, which take longer to draw than to store.
#include <range/v3/algorithm/any_of.hpp>

#include "codegen/kernels/query.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

namespace {

/// A product with a factor of dropout, in what expression `e` is made of; -1: there is none.
int dropped(const Kernel& k, int e) {
  if (e < 0 || expression_of(k, e).kind != Expression::Kind::op) return -1;
  const Expression& x = expression_of(k, e);
  for (int operand : {x.a, x.b, x.c})
    if (operand >= 0 && expression_of(k, operand).kind == Expression::Kind::keep) return e;
  for (int operand : {x.a, x.b, x.c})
    if (const int found = dropped(k, operand); found >= 0) return found;
  return -1;
}

bool reads(const Kernel& k, TensorId tensor) {
  return ranges::any_of(k.expressions, [&](const Expression& e) {
    return e.kind == Expression::Kind::load && e.access.tensor == tensor;
  });
}

}  // namespace

void drop_once(KernelProgram& program) {
  for (Kernel& k : program.kernels) {
    if (k.anchor != Anchor::row || k.steps.size() < 2) continue;
    Step& last = k.steps.back();
    for (Step& sum : k.steps) {
      const int part = sum.reduces && sum.over == last.over ? dropped(k, sum.value) : -1;
      if (part < 0) continue;
      for (Step::Store& store : last.stores) {
        const Tensor& to = program.tensors[store.to.tensor];
        if (to.element != Element::real || reads(k, store.to.tensor) || !needs(k, store.value, part)) continue;
        keep_for_store(k, sum, part, store);
        break;
      }
    }
  }
}

}  // namespace tessera::codegen
