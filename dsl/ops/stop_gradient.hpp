// stop_gradient: a value that is a constant for the gradients.
#pragma once

#include "dsl/ops/unary.hpp"

namespace tessera {

/// x, to which no gradient is passed on. A parameter that is read through it alone gets none, which training refuses.
/// PyTorch equivalent: x.detach().
template <AnyTensor X>
auto stop_gradient(const X& x) {
  return detail::unary<graph::Op::stop_gradient>(x);
}

}  // namespace tessera
