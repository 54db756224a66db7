// erf: the error function.
#pragma once

#include "dsl/ops/unary.hpp"

namespace tessera {

/// 2/sqrt(pi) * the integral of exp(-t^2) from 0 to x, elementwise.
/// PyTorch equivalent: torch.erf(x).
template <AnyTensor X>
auto erf(const X& x) {
  return detail::unary<graph::Op::erf>(x);
}

}  // namespace tessera
