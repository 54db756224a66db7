// take: one position of an axis, which goes away.
#pragma once

#include <utility>

#include "dsl/ops/slice.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// One position of an axis: take<1>(x, 0_c) of [B, N+1, D] is the class token, [B, D].
/// Sentences: [slice-range], [axis-index], [dim-unknown].
/// PyTorch equivalent: x.select(axis, position), x[:, 0].
template <int axis, AnyTensor X, DimExpression Position>
auto take(const X& x, Position) {
  if constexpr (poisoned<X> || Position::poisoned) {
    return Poison{};
  } else {
    constexpr int rank = X::shape.rank, at = axis_index(axis, rank);
    constexpr auto problem = [] {
      return detail::slice_problem("take", axis, X::shape, Position::value, Dim::constant(1));
    };
    if constexpr (!fits<decltype(problem)>) {
      return refuse<decltype(problem)>();
    } else {
      using Result = remove_axis<typename X::dims, at>;
      const graph::NodeId one = recorder().slice(node_of(x), at, Position::value.value(), Dim::constant(1));
      graph::Rearrangement r;
      r.atoms = Result::shape.dims();
      for (int i = 0, atom = 0; i < rank; ++i) {
        r.from.emplace_back();
        if (i == at) continue;
        r.from.back().push_back(atom);
        r.to.push_back({atom++});
      }
      return TensorOf<Result>(recorder().rearrange(one, std::move(r), Result::shape.dims()));
    }
  }
}

}  // namespace tessera
