#include "codegen/cpu/reduction.hpp"

#include <cmath>

#include "codegen/passes/op.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// In a vector with fewer lanes, the others get what changes nothing.
Expr masked(const Values& v, const Step& s, Expr value, bool across) {
  if (!across || !v.tail) return value;
  const Expr other = tree::real(s.reduction == Reduction::sum ? 0 : -INFINITY);
  return call(v.some ? "v_keep_some" : "v_keep_n", {std::move(value), v.tail, other});
}

}  // namespace

Expr identity(const Step& s) {
  return s.reduction == Reduction::sum ? call("v_zero", {}) : call("v_set", {tree::real(-INFINITY)});
}

Expr accumulate(const Step& s, Expr sum, Expr value) {
  return call(s.reduction == Reduction::sum ? "v_add" : "v_max", {std::move(sum), std::move(value)});
}

Expr accumulate(Values& v, const Step& s, Block& b, Expr sum, bool across) {
  const Expression& e = v.expression(s.value);
  bool multiplies = s.reduction == Reduction::sum && e.kind == Expression::Kind::op && e.op == graph::Op::multiply;
  bool zero_in_tail = multiplies && v.expression(e.a).kind == Expression::Kind::load &&
                      v.expression(e.b).kind == Expression::Kind::load;
  if (multiplies && (!across || !v.tail || zero_in_tail)) {
    Expr a = v.evaluate(b, e.a), c = v.evaluate(b, e.b);
    return call("v_fma", {std::move(a), std::move(c), std::move(sum)});
  }
  if (multiplies && v.some) {
    Expr a = v.evaluate(b, e.a), c = v.evaluate(b, e.b);
    return call("v_fma_some", {std::move(a), std::move(c), std::move(sum), v.tail});
  }
  return accumulate(s, std::move(sum), masked(v, s, v.evaluate(b, s.value), across));
}

void add_to_earlier(Block& b, const char* first, Block sums) {
  b.push_back(tree::when(tree::binary(">", name(first), integer(0)), std::move(sums)));
}

Expr images(const Kernel& kernel) { return name(kernel.accumulates ? "group.images" : "batch"); }

}  // namespace tessera::codegen::cpu
