// negate: the unary minus.
#pragma once

#include "dsl/ops/unary.hpp"

namespace tessera {

/// -x, elementwise.
/// PyTorch equivalent: -x.
template <AnyTensor X>
auto operator-(const X& x) {
  return detail::unary<graph::Op::negate>(x);
}

}  // namespace tessera
