// repeat: new axes along which a tensor is repeated, by an einops pattern.
#pragma once

#include <cstddef>
#include <vector>

#include "dsl/ops/pattern_record.hpp"
#include "dsl/pattern_plan.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// Repeats a tensor along new axes: repeat<"n d -> b n d">(class_token, "b"_is(B)). The grammar is rearrange's, and the
/// right side may have names (and numbers) of its own, whose dims are given.
/// Sentences: as rearrange.
/// PyTorch equivalent: einops.repeat(x, pattern, b=...), or x.expand(b, -1, -1).
template <fixed_string P, AnyTensor X, class... Bs>
auto repeat(const X& x, Bs...) {
  if constexpr (poisoned<X> || (Bs::dim::poisoned || ...)) {
    return Poison{};
  } else {
    using Solved = SolvedPattern<PatternOp::repeat, P, typename X::dims, Bs...>;
    if constexpr (!fits<Solved>) {
      return Refusal<Solved>::poison();
    } else {
      using Result = detail::PatternResult<Solved>;
      const PatternSide& left = Result::pattern.operand[0];
      const PatternSide& right = Result::pattern.result;
      const std::vector<Dim> all = Result::names::shape.dims();

      // One dim a name on the left, then one a name on the right, then the groups of the right.
      const graph::NodeId names = detail::opened(node_of(x), left, all);
      std::vector<int> axes, order;
      std::vector<Dim> wide;
      for (int i = 0; i < right.names; ++i) {
        wide.push_back(all[static_cast<std::size_t>(right.name[i])]);
        if (const int at = left.find(right.name[i]); at >= 0) {
          order.push_back(at);
          axes.push_back(i);
        }
      }
      // A broadcast keeps the order of its operand's dims.
      graph::NodeId node = detail::in_order(names, order);
      if (axes.size() != wide.size()) node = recorder().broadcast(node, wide, axes);
      node = detail::closed(node, right, Result::shape::shape.dims());
      return TensorOf<typename Result::shape>(node);
    }
  }
}

}  // namespace tessera
