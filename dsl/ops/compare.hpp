// less, greater, equal and the like: 1 where it is so, else 0.
#pragma once

#include "dsl/ops/arithmetic.hpp"
#include "dsl/ops/scale.hpp"
#include "dsl/ops/unary.hpp"

namespace tessera {

namespace detail {

struct Equal {
  static constexpr graph::Op op = graph::Op::equal;
  static constexpr const char *name = "compare", *sign = "and";
};

}  // namespace detail

/// 1 where a > b, else 0, as real numbers; shapes as for +, and either may be a plain number. No gradient. With nan, 0,
/// as for all comparisons but not_equal. Sentence: [elementwise-shape].
/// PyTorch equivalent: (a > b).float().
template <class A, class B>
  requires AnyTensor<A> || AnyTensor<B>
auto greater(const A& a, const B& b) {
  return detail::unary<graph::Op::step>(a - b);
}

/// 1 where a < b, else 0; as greater.
/// PyTorch equivalent: (a < b).float().
template <class A, class B>
  requires AnyTensor<A> || AnyTensor<B>
auto less(const A& a, const B& b) {
  return greater(b, a);
}

/// 1 where a == b, else 0; as greater, of tensors.
/// PyTorch equivalent: (a == b).float().
template <AnyTensor A, AnyTensor B>
auto equal(const A& a, const B& b) {
  using Problem = detail::ArithmeticProblem<detail::Equal, A, B>;
  if constexpr (fits<Problem>)
    return detail::arithmetic<detail::Equal>(a, b);
  else
    return Refusal<Problem>::poison();
}

/// 1 where a == b, a plain number, else 0.
/// PyTorch equivalent: (a == b).float().
template <AnyTensor A>
auto equal(const A& a, double b) {
  return detail::with_number<graph::Op::equal>(a, b);
}

/// 1 where a >= b, else 0; as greater, of a tensor and a tensor or number.
/// PyTorch equivalent: (a >= b).float().
template <AnyTensor A, class B>
auto greater_equal(const A& a, const B& b) {
  const auto above = greater(a, b);
  return above + equal(a, b);
}

/// 1 where a <= b, else 0; as greater, of a tensor and a tensor or number.
/// PyTorch equivalent: (a <= b).float().
template <AnyTensor A, class B>
auto less_equal(const A& a, const B& b) {
  const auto below = less(a, b);
  return below + equal(a, b);
}

/// 1 where a != b, else 0; as greater, of a tensor and a tensor or number.
/// PyTorch equivalent: (a != b).float().
template <AnyTensor A, class B>
auto not_equal(const A& a, const B& b) {
  return 1 - equal(a, b);
}

}  // namespace tessera
