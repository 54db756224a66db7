// pow: a whole power.
#pragma once

#include "dsl/ops/arithmetic.hpp"
#include "dsl/ops/scale.hpp"

namespace tessera {

/// x to the power of an integer, elementwise: pow<2>(x), by repeated squaring; pow<-1>(x) is 1 / x.
/// PyTorch equivalent: torch.pow(x, exponent).
template <int exponent, AnyTensor X>
auto pow(const X& x) {
  if constexpr (poisoned<X>) {
    return Poison{};
  } else if constexpr (exponent == 0) {
    graph::Builder& r = recorder();
    const graph::NodeId one = r.constant(1);
    return TensorOf<typename X::dims>(r.broadcast(one, X::shape.dims(), {}));
  } else if constexpr (exponent < 0) {
    return 1 / pow<-exponent>(x);
  } else if constexpr (exponent == 1) {
    return TensorOf<typename X::dims>(node_of(x));
  } else {
    const auto half = pow<exponent / 2>(x);
    const auto square = half * half;
    if constexpr (exponent % 2)
      return square * x;
    else
      return square;
  }
}

}  // namespace tessera
