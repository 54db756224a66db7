// rearrange: split, permute and merge axes by an einops pattern.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "dsl/pattern_plan.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// A side's groups as numbers of names.
inline std::vector<std::vector<int>> groups_of(const PatternSide& side) {
  std::vector<std::vector<int>> groups;
  for (int g = 0; g < side.groups; ++g)
    groups.emplace_back(side.name + side.first[g], side.name + side.first[g] + side.count[g]);
  return groups;
}

}  // namespace detail

/// Splits, permutes and merges axes: rearrange<"b n (s h k) -> s b h n k">(x, "s"_is(3_c), "h"_is(H)).
/// Every name stands once on each side; names in brackets are one axis, the outermost first; 1 is an axis of size one;
/// ... is the axes that are not named. A name in a bracket is given its dim by "h"_is(H), but for one a bracket, which
/// follows. Sentences: [pattern-syntax], [pattern-names], [pattern-rank], [pattern-size], [pattern-unknown],
/// [pattern-binding], [dim-division].
/// PyTorch equivalent: einops.rearrange(x, pattern, h=...). Grammar: Rogozhnikov, Einops, ICLR 2022.
template <fixed_string P, AnyTensor X, class... Bs>
auto rearrange(const X& x, Bs...) {
  if constexpr (poisoned<X> || (Bs::dim::poisoned || ...)) {
    return Poison{};
  } else {
    using Solved = SolvedPattern<PatternOp::rearrange, P, typename X::dims, Bs...>;
    if constexpr (!fits<Solved>) {
      return Refusal<Solved>::poison();
    } else {
      using Result = detail::PatternResult<Solved>;
      graph::Rearrangement r;
      r.atoms = Result::names::shape.dims();
      r.from = detail::groups_of(Result::pattern.operand[0]);
      r.to = detail::groups_of(Result::pattern.result);
      return TensorOf<typename Result::shape>(
          recorder().rearrange(node_of(x), std::move(r), Result::shape::shape.dims()));
    }
  }
}

}  // namespace tessera
