// rename: the same numbers under the name of another axis.
#pragma once

#include "dsl/axis_ref.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// Says that an axis means another one of the same size: rename<1>(x, K). This is the only way from one name to
/// another, and both sizes have to be known, else [rename-size]. Recorded as a slice of the whole axis. PyTorch
/// equivalent: none is needed, since its axes have no names.
template <AxisRef axis, AnyTensor X, DimExpression To>
auto rename(const X& x, To) {
  if constexpr (poisoned<X> || axis.poisoned || To::poisoned) {
    return Poison{};
  } else {
    constexpr int at = axis_index(axis, X::shape);
    constexpr auto problem = [] {
      Text t;
      explain_axis(t, "rename", axis, X::shape);
      if (t.size || X::shape[at] == To::value) return t;
      const bool known = X::shape[at].known() && To::value.known();
      if (known && X::shape[at].value() == To::value.value()) return t;
      t.put("rename<");
      axis.print(t);
      t.put("> of ");
      X::shape.print(t);
      t.put(" to ");
      To::value.print(t);
      t.put(": axis ").put(std::int64_t{at}).put(" is ");
      X::shape[at].print(t);
      t.put(known ? ", and the sizes differ"
                  : ", and the sizes cannot be proved equal: one is known only when the program runs");
      for (int i = 0; known && i < X::shape.rank; ++i) {
        if (!X::shape[i].known() || X::shape[i].value() != To::value.value()) continue;
        t.put(" (did you mean axis ").put(std::int64_t{i}).put("?)");
        break;
      }
      t.put(" [rename-size]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      return TensorOf<replace_axis<typename X::dims, at, To>>(recorder().slice(node_of(x), at, 0, To::value));
    }
  }
}

}  // namespace tessera
