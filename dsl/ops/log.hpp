// log: the natural logarithm.
#pragma once

#include "dsl/ops/unary.hpp"

namespace tessera {

/// The natural logarithm of x, elementwise; -inf at 0, nan below.
/// PyTorch equivalent: torch.log(x).
template <AnyTensor X>
auto log(const X& x) {
  return detail::unary<graph::Op::log>(x);
}

}  // namespace tessera
