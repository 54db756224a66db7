// slice: a run of positions along an axis.
#pragma once

#include <cstdint>

#include "dsl/axis_ref.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// `length` positions from `offset` have to lie within the axis, provably.
constexpr Text slice_problem(const char* op, const AxisRef& axis, const Shape& x, const Dim& offset,
                             const Dim& length) {
  Text t;
  explain_axis(t, op, axis, x);
  if (t.size) return t;
  const Dim& extent = x[axis_index(axis, x)];
  const Dim rest = extent - offset - length;
  const bool provable = rest.known() && offset.known();
  if (provable && rest.value() >= 0 && offset.value() >= 0) return t;
  t.put(op).put("<");
  axis.print(t);
  t.put("> of ");
  x.print(t);
  t.put(" takes ");
  length.print(t);
  t.put(length == Dim::constant(1) ? " position from " : " positions from ");
  offset.print(t);
  if (provable) {
    t.put(", and there are ");
    extent.print(t);
    t.put(" [slice-range]");
  } else {
    t.put(", which cannot be proved to lie within ");
    extent.print(t);
    t.put(": a size is known only when the program runs [dim-unknown]");
  }
  return t;
}

}  // namespace detail

/// `length` positions of an axis from `offset` on: slice<1>(x, 1_c, N) of [B, N+1, D] is [B, N, D], without the class
/// token. Sentences: [slice-range], [axis-index], [axis-name], [dim-unknown]. PyTorch equivalent: x.narrow(axis,
/// offset, length).
template <AxisRef axis, AnyTensor X, DimExpression Offset, DimExpression Length>
auto slice(const X& x, Offset, Length) {
  if constexpr (poisoned<X> || axis.poisoned || Offset::poisoned || Length::poisoned) {
    return Poison{};
  } else {
    constexpr int at = axis_index(axis, X::shape);
    constexpr auto problem = [] {
      return detail::slice_problem("slice", axis, X::shape, Offset::value, Length::value);
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      return TensorOf<replace_axis<typename X::dims, at, Length>>(
          recorder().slice(node_of(x), at, Offset::value.value(), Length::value));
    }
  }
}

}  // namespace tessera
