// unstack: an axis becomes several tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "dsl/ops/take.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

template <int axis, class X, std::size_t... I>
auto take_each(const X& x, std::index_sequence<I...>) {
  return std::array{take<axis>(x, Constant<static_cast<std::int64_t>(I)>{})...};
}

}  // namespace detail

/// The positions of an axis as `count` tensors without it: auto [q, k, v] = unstack<0>(qkv, 3_c) of [3, B, H, N, K].
/// Sentences: [unstack-count], [axis-index], [axis-name], [count].
/// PyTorch equivalent: q, k, v = x.unbind(axis).
template <AxisRef axis, AnyTensor X, DimExpression Count>
auto unstack(const X& x, Count) {
  constexpr std::size_t count = static_cast<std::size_t>(count_of<Count{}>());
  if constexpr (poisoned<X> || axis.poisoned || Count::poisoned) {
    return std::array<Poison, count>{};
  } else {
    constexpr int at = axis_index(axis, X::shape);
    constexpr auto problem = [] {
      Text t;
      explain_axis(t, "unstack", axis, X::shape);
      if (t.size || (X::shape[at].known() && X::shape[at].value() == std::int64_t{count})) return t;
      t.put("unstack<");
      axis.print(t);
      t.put("> of ");
      X::shape.print(t);
      t.put(" into ").put(std::int64_t{count}).put(" tensors: axis ").put(std::int64_t{at}).put(" is ");
      X::shape[at].print(t);
      if (X::shape[at].known()) {
        t.put(" (did you mean unstack<");
        axis.print(t);
        t.put(">(x, ").put(X::shape[at].value()).put("_c)?)");
      }
      t.put(" [unstack-count]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      Refusal<decltype(problem)>::poison();
      return std::array<Poison, count>{};
    } else {
      return detail::take_each<at>(x, std::make_index_sequence<count>{});
    }
  }
}

}  // namespace tessera
