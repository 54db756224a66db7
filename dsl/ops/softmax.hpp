// softmax: numbers along an axis become probabilities.
#pragma once

#include "dsl/axis_ref.hpp"
#include "dsl/module.hpp"

namespace tessera {

/// exp(x) / sum(exp(x)) along one axis, counted from the front, or from the back when negative. Sentence: [axis-index].
/// PyTorch equivalent: torch.softmax(x, dim=axis).
template <AxisRef axis, AnyTensor X>
auto softmax(const X& x) {
  if constexpr (poisoned<X> || axis.poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      Text t;
      explain_axis(t, "softmax", axis, X::shape);
      return t;
    };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else
      return TensorOf<typename X::dims>(recorder().softmax(node_of(x), axis_index(axis, X::shape)));
  }
}

/// Without an axis: the sentence [axis-missing].
template <AnyTensor X>
auto softmax(const X&) {
  if constexpr (poisoned<X>) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return axis_missing("softmax", X::shape); };
    return Refusal<decltype(problem)>::poison();
  }
}

/// softmax over the last axis as a module, for Sequential. PyTorch equivalent: torch.nn.Softmax(dim=-1).
struct Softmax : Module {
  TESSERA_MEMBERS(Softmax)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return softmax<-1>(x);
  }
};

}  // namespace tessera
