// log_softmax: the logarithm of softmax, without its underflow.
#pragma once

#include "dsl/axis_ref.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// x - logsumexp(x) along one axis. Sentences: [axis-index], [axis-name].
/// PyTorch equivalent: torch.log_softmax(x, dim=axis).
template <AxisRef axis, AnyTensor X>
auto log_softmax(const X& x) {
  if constexpr (poisoned<X> || axis.poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      Text t;
      explain_axis(t, "log_softmax", axis, X::shape);
      return t;
    };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else
      return TensorOf<typename X::dims>(recorder().log_softmax(node_of(x), axis_index(axis, X::shape)));
  }
}

/// Without an axis: the sentence [axis-missing].
template <AnyTensor X>
auto log_softmax(const X&) {
  if constexpr (poisoned<X>) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return axis_missing("log_softmax", X::shape); };
    return Refusal<decltype(problem)>::poison();
  }
}

}  // namespace tessera
