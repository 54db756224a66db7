// cos: the cosine.
#pragma once

#include "dsl/ops/unary.hpp"

namespace tessera {

/// The cosine of x in radians, elementwise. In emitted code within 2e-7 for |x| to 8192, where digits begin to be lost.
/// PyTorch equivalent: torch.cos(x).
template <AnyTensor X>
auto cos(const X& x) {
  return detail::unary<graph::Op::cos>(x);
}

}  // namespace tessera
