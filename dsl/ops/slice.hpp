// slice: a run of positions along an axis.
#pragma once

#include <cstdint>

#include "dsl/axis_ref.hpp"
#include "dsl/mismatch.hpp"
#include "dsl/ops/part.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// Adds what is wrong where `length` is called as some of the parts of `extent` are, and others begin at `offset`: the
/// registers of CLS + R + N, from 1 on. A sum with a number in it has no order: of what is named, only the ends are
/// certain there, and between numbers alone lies a window.
constexpr void explain_other_parts(Text& t, int axis, const Dim& extent, const Dim& offset, const Dim& length) {
  const Dim others = extent - length, behind = others - offset;
  if (length.normal.is_constant() || others.normal.terms == 0 ||
      others.normal.terms != extent.normal.terms - length.normal.terms)
    return;
  if (extent.parts() == 0) {
    const bool at_an_end = offset.value() == 0 || behind.value() == 0;
    if (at_an_end || (offset.normal.is_constant() && behind.normal.is_constant())) return;
    t.put(", and leaves ");
    behind.normal.print(t);
    t.put(" behind them, and a sum with a number has no order (");
    suggest_slice(t, axis, others.normal, length.shown);
    t.put(" else name the number: axis<CLS, 1>)");
  } else if (Dim before; !find_part(extent, length, before)) {
    t.put(", and ");
    length.normal.print(t);
    t.put(" is no run of its parts");
    for (int i = 0; i < extent.parts(); ++i) {
      Polynomial part;
      part.add(extent.part(i));
      t.put(i ? ", " : " ");
      part.print(t);
    }
  } else if (before.value() != offset.value()) {
    t.put(", and ");
    length.shown.print(t);
    t.put(" begins at ");
    before.print(t);
    t.put(" (");
    suggest_slice(t, axis, before.shown, length.shown);
    t.put(")");
  }
}

/// `length` positions from `offset` have to lie within the axis, provably.
constexpr Text slice_problem(const char* op, const AxisRef& axis, const Shape& x, const Dim& offset,
                             const Dim& length) {
  Text t;
  explain_axis(t, op, axis, x);
  if (t.size) return t;
  const int at = axis_index(axis, x);
  const Dim& extent = x[at];
  const Dim rest = extent - offset - length;
  const bool provable = rest.known() && offset.known();
  Text other;
  if (provable && rest.value() >= 0 && offset.value() >= 0) {
    explain_other_parts(other, at, extent, offset, length);
    if (!other.size) return t;
  }
  t.put(op).put("<");
  axis.print(t);
  t.put("> of ");
  x.print(t);
  t.put(" takes ");
  length.print(t);
  t.put(length == Dim::constant(1) ? " position from " : " positions from ");
  offset.print(t);
  if (other.size) {
    t.put(other.view()).put(" [slice-part]");
  } else if (provable) {
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
/// token. Where the length has the name of a part of the axis, that part has to lie there: of [B, CLS+R+N, D] it is
/// slice<1>(x, CLS + R, N), or part<N>(x). Sentences: [slice-part], [slice-range], [axis-index], [axis-name],
/// [dim-unknown]. PyTorch equivalent: x.narrow(axis, offset, length).
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
