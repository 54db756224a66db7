// maximum and minimum: the larger and the smaller of two tensors.
#pragma once

#include "dsl/ops/arithmetic.hpp"
#include "dsl/ops/negate.hpp"

namespace tessera {

namespace detail {

struct Maximum {
  static constexpr graph::Op op = graph::Op::maximum;
  static constexpr const char *name = "maximum", *sign = "and";
};

}  // namespace detail

/// The larger of a and b, elementwise; shapes as for +. Where they agree, each gets half of the gradient.
/// Sentence: [elementwise-shape].
/// PyTorch equivalent: torch.maximum(a, b).
template <AnyTensor A, AnyTensor B>
auto maximum(const A& a, const B& b) {
  using Problem = detail::ArithmeticProblem<detail::Maximum, A, B>;
  if constexpr (fits<Problem>)
    return detail::arithmetic<detail::Maximum>(a, b);
  else
    return Refusal<Problem>::poison();
}

/// The smaller of a and b, elementwise, as -maximum(-a, -b).
/// Sentence: [elementwise-shape].
/// PyTorch equivalent: torch.minimum(a, b).
template <AnyTensor A, AnyTensor B>
auto minimum(const A& a, const B& b) {
  const auto left = -a;
  const auto right = -b;
  return -maximum(left, right);
}

}  // namespace tessera
