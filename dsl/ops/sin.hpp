// sin: the sine.
#pragma once

#include "dsl/ops/unary.hpp"

namespace tessera {

/// The sine of x in radians, elementwise. In emitted code within 2e-7 for |x| to 8192, where digits begin to be lost.
/// PyTorch equivalent: torch.sin(x).
template <AnyTensor X>
auto sin(const X& x) {
  return detail::unary<graph::Op::sin>(x);
}

}  // namespace tessera
