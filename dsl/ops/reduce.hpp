// reduce: axes reduced away by an einops pattern.
#pragma once

#include <cstddef>
#include <vector>

#include "dsl/ops/pattern_record.hpp"
#include "dsl/ops/reductions.hpp"
#include "dsl/pattern_plan.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// Reduces the names away that the right side does not have, and rearranges the others:
/// reduce<"b n d -> b d", "mean">(x); pooling is reduce<"b (h 2) (w 2) c -> b h w c", "max">(x). The grammar is
/// rearrange's, and the left side may have names and numbers of its own. The reduction is sum, mean, max or min.
/// Sentences: [reduce-name], else as rearrange.
/// PyTorch equivalent: einops.reduce(x, pattern, "mean", h=...).
template <fixed_string P, fixed_string Name, AnyTensor X, class... Bs>
auto reduce(const X& x, Bs...) {
  if constexpr (poisoned<X> || (Bs::dim::poisoned || ...)) {
    return Poison{};
  } else {
    using Solved = SolvedPattern<PatternOp::reduce, P, typename X::dims, Bs...>;
    constexpr auto problem = [] {
      Text t = Solved::plan.problem;
      if (t.size || detail::reduction_named(Name.view()) != detail::Reduction::none) return t;
      put_pattern(t, "reduce", P.view(), 0);
      t.put("there is no reduction ").put(Name.view()).put("; there are sum, mean, max and min [reduce-name]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      using Result = detail::PatternResult<Solved>;
      const PatternSide& left = Result::pattern.operand[0];
      const PatternSide& right = Result::pattern.result;

      // One dim a name on the left, then one a name on the right, then the groups of the right.
      const graph::NodeId names = detail::opened(node_of(x), left, Result::names::shape.dims());
      std::vector<int> gone, kept, order;
      for (int i = 0; i < left.names; ++i) (right.find(left.name[i]) < 0 ? gone : kept).push_back(left.name[i]);
      for (int i = 0; i < right.names; ++i)
        for (std::size_t k = 0; k < kept.size(); ++k)
          if (kept[k] == right.name[i]) order.push_back(static_cast<int>(k));
      for (int& name : gone) name = left.find(name);
      const graph::NodeId sum = detail::reduced(detail::reduction_named(Name.view()), names, gone);
      const graph::NodeId ordered = detail::in_order(sum, order);
      return TensorOf<typename Result::shape>(detail::closed(ordered, right, Result::shape::shape.dims()));
    }
  }
}

}  // namespace tessera
