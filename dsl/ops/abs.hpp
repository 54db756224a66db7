// abs: the absolute value.
#pragma once

#include "dsl/ops/arithmetic.hpp"
#include "dsl/ops/negate.hpp"
#include "dsl/ops/unary.hpp"

namespace tessera {

/// |x|, elementwise, as x times its sign, so that the gradient is the sign: 0 at 0.
/// PyTorch equivalent: torch.abs(x).
template <AnyTensor X>
auto abs(const X& x) {
  const auto above = detail::unary<graph::Op::step>(x);
  const auto below = detail::unary<graph::Op::step>(-x);
  return x * (above - below);
}

}  // namespace tessera
