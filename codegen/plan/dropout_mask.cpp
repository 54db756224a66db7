// Values times dropout's factors, which take longer to draw than to store.
#include "codegen/plan/dropout_mask.hpp"

#include <range/v3/algorithm/any_of.hpp>

#include "codegen/kernels/query.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

namespace {

/// A product with a factor of dropout, in what expression `e` is made of; none where there is none.
ExprId dropped(const Kernel& k, ExprId e) {
  if (!e.valid() || expression_of(k, e).kind != Expression::Kind::op) return {};
  const Expression& x = expression_of(k, e);
  for (ExprId operand : {x.a, x.b, x.c})
    if (operand.valid() && expression_of(k, operand).kind == Expression::Kind::keep) return e;
  for (ExprId operand : {x.a, x.b, x.c})
    if (const ExprId found = dropped(k, operand); found.valid()) return found;
  return {};
}

bool reads(const Kernel& k, TensorId tensor) {
  return ranges::any_of(k.expressions, [&](const Expression& e) {
    return e.kind == Expression::Kind::load && e.access.tensor == tensor;
  });
}

}  // namespace

void draw_mask_once(KernelProgram& program) {
  for (Kernel& k : program.kernels) {
    if (k.anchor != Anchor::row || k.steps.size() < 2) continue;
    Step& last = k.steps.back();
    for (Step& sum : k.steps) {
      const ExprId part = sum.reduces && sum.over == last.over ? dropped(k, sum.value) : ExprId();
      if (!part.valid()) continue;
      for (Step::Store& store : last.stores) {
        const Tensor& to = program.tensors[store.to.tensor];
        if (to.element != DType::real || reads(k, store.to.tensor) || !needs(k, store.value, part)) continue;
        keep_for_store(k, sum, part, store);
        break;
      }
    }
  }
}

}  // namespace tessera::codegen
