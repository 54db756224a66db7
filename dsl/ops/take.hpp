// take: one position of an axis, which goes away.
#pragma once

#include "dsl/ops/part.hpp"
#include "dsl/ops/reordered.hpp"
#include "dsl/ops/slice.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// Position `offset` of axis `at`, which goes away.
template <int at, class X>
auto taken(const X& x, std::int64_t offset) {
  const graph::NodeId one = recorder().slice(node_of(x), at, offset, Dim::constant(1));
  return TensorOf<remove_axis<typename X::dims, at>>(reordered(one, axes_but(at, X::shape.rank)));
}

}  // namespace detail

/// One position of an axis: take<1>(x, 0_c) of [B, N+1, D] is the class token, [B, D].
/// Sentences: [slice-range], [axis-index], [axis-name], [dim-unknown].
/// PyTorch equivalent: x.select(axis, position), x[:, 0].
template <AxisRef axis, AnyTensor X, DimExpression Position>
auto take(const X& x, Position) {
  if constexpr (poisoned<X> || axis.poisoned || Position::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      return detail::slice_problem("take", axis, X::shape, Position::value, Dim::constant(1));
    };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else
      return detail::taken<axis_index(axis, X::shape)>(x, Position::value.value());
  }
}

/// The part of a sum axis that is one position, without the axis: take<CLS>(x) of [B, T, D] is the class token, [B, D],
/// where CLS = axis<"CLS", 1> and T = axis<"T", CLS + N>. See part.
/// Sentences: [part-axis], [part-size], [axis-index], [axis-name].
/// PyTorch equivalent: x[:, 0], with the position counted by hand.
template <DimExpression auto Part, AxisRef... axis, AnyTensor X>
auto take(const X& x) {
  using Solved = detail::SolvedPart<detail::TakeOp, std::remove_cv_t<decltype(Part)>, X, axis...>;
  if constexpr (Solved::poisoned)
    return Poison{};
  else if constexpr (!fits<Solved>)
    return Refusal<Solved>::poison();
  else
    return detail::taken<Solved::found.axis>(x, Solved::found.before.value());
}

}  // namespace tessera
