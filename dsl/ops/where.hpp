// where: of two tensors one or the other, element by element.
#pragma once

#include <type_traits>

#include "dsl/mismatch.hpp"
#include "dsl/ops/arithmetic.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

constexpr const Shape& longest(const Shape& a, const Shape& b, const Shape& c) {
  const Shape& ab = a.rank >= b.rank ? a : b;
  return ab.rank >= c.rank ? ab : c;
}

constexpr Text where_problem(const Shape& condition, const Shape& a, const Shape& b) {
  Text t;
  const Shape& wide = longest(condition, a, b);
  for (const Shape* x : {&condition, &a, &b}) {
    if (t.size || ends_with(wide, *x)) continue;
    t.put("where(");
    condition.print(t);
    t.put(", ");
    a.print(t);
    t.put(", ");
    b.print(t);
    t.put("): ");
    x->print(t);
    t.put(" is not the end of ");
    wide.print(t);
    Shape end;
    for (int i = wide.rank - x->rank; i < wide.rank; ++i) end.dim[end.rank++] = wide.dim[i];
    int i = x->rank - 1;
    while ((*x)[i].lines_up_with(end[i])) --i;
    t.put(": axis ").put(std::int64_t{i}).put(" is ");
    (*x)[i].print(t);
    t.put(", needs ");
    end[i].print(t);
    bool anywhere = true;
    for (int k = 0; k < x->rank; ++k) {
      int m = 0;
      while (m < wide.rank && !(*x)[k].lines_up_with(wide[m])) ++m;
      anywhere &= m < wide.rank;
    }
    if (anywhere)
      t.put(" (did you mean expand_as, which matches axes by name?)");
    else if (!wide[0].known() && (*x)[0].known()) {  // the same for each image, as a mask is
      t.put(" (did you mean ");
      end.print(t);
      t.put("?)");
    } else
      suggest(t, (*x)[i], end[i], i);
    t.put(" [where-shape]");
  }
  return t;
}

/// A plain number where a tensor may stand.
struct Number {
  using dims = Dims<>;
  static constexpr Shape shape{};
  double value;
};

template <class X>
graph::NodeId wide_node(const X& x, const Shape& to) {
  return widened(x, to);
}
inline graph::NodeId wide_node(const Number& x, const Shape&) { return recorder().constant(x.value); }

template <class C, class A, class B>
auto chosen(const C& condition, const A& a, const B& b) {
  constexpr auto problem = [] { return where_problem(C::shape, A::shape, B::shape); };
  if constexpr (!fits<decltype(problem)>) {
    return Refusal<decltype(problem)>::poison();
  } else {
    using AB = std::conditional_t<(A::shape.rank >= B::shape.rank), A, B>;
    using Wide = std::conditional_t<(AB::shape.rank >= C::shape.rank), AB, C>;
    const graph::NodeId c = wide_node(condition, Wide::shape);
    const graph::NodeId first = wide_node(a, Wide::shape);
    const graph::NodeId second = wide_node(b, Wide::shape);
    return TensorOf<typename Wide::dims>(recorder().select(c, first, second));
  }
}

template <AnyTensor X>
constexpr const X& tensor_or_number(const X& x) {
  return x;
}
constexpr Number tensor_or_number(double x) { return {x}; }

}  // namespace detail

/// a where the condition is above 0, else b, elementwise; a and b are tensors or plain numbers. Shapes are equal, or
/// the ends of the longest one, as for +. The gradient goes to what was taken. Sentence: [where-shape]. PyTorch
/// equivalent: torch.where(condition > 0, a, b).
template <AnyTensor C, class A, class B>
auto where(const C& condition, const A& a, const B& b) {
  if constexpr (poisoned<C, A, B>)
    return Poison{};
  else
    return detail::chosen(condition, detail::tensor_or_number(a), detail::tensor_or_number(b));
}

}  // namespace tessera
