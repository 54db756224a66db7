// exp: the exponential.
#pragma once

#include "dsl/ops/unary.hpp"

namespace tessera {

/// e to the power of x, elementwise.
/// PyTorch equivalent: torch.exp(x).
template <AnyTensor X>
auto exp(const X& x) {
  return detail::unary<graph::Op::exp>(x);
}

}  // namespace tessera
