// repeat: new axes along which a tensor is repeated, by an einops pattern.
#pragma once

#include <utility>
#include <vector>

#include "dsl/ops/rearrange.hpp"
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
      return refuse<Solved>();
    } else {
      using Result = detail::PatternResult<Solved>;
      const PatternSide& left = Result::pattern.operand[0];
      const PatternSide& right = Result::pattern.result;
      const std::vector<Dim> all = Result::names::shape.dims();

      // One dim a name on the left, then one a name on the right, then the groups of the right.
      graph::NodeId node = node_of(x);
      bool split = false, merged = false;
      for (int g = 0; g < left.groups; ++g) split |= left.count[g] != 1;
      for (int g = 0; g < right.groups; ++g) merged |= right.count[g] != 1;
      if (split) {
        graph::Rearrangement r;
        std::vector<Dim> to;
        for (int i = 0; i < left.names; ++i) {
          to.push_back(all[static_cast<std::size_t>(left.name[i])]);
          r.to.push_back({i});
        }
        r.atoms = to;
        for (int g = 0, i = 0; g < left.groups; ++g) {
          r.from.emplace_back();
          for (int k = 0; k < left.count[g]; ++k) r.from.back().push_back(i++);
        }
        node = recorder().rearrange(node, std::move(r), std::move(to));
      }
      // A broadcast keeps the order of its operand's dims.
      std::vector<int> axes, order;
      std::vector<Dim> wide, ordered;
      for (int i = 0; i < right.names; ++i) {
        wide.push_back(all[static_cast<std::size_t>(right.name[i])]);
        if (const int at = left.find(right.name[i]); at >= 0) {
          order.push_back(at);
          ordered.push_back(wide.back());
          axes.push_back(i);
        }
      }
      bool permuted = false;
      for (std::size_t i = 0; i < order.size(); ++i) permuted |= order[i] != static_cast<int>(i);
      if (permuted) {
        graph::Rearrangement r;
        for (int i = 0; i < left.names; ++i) {
          r.atoms.push_back(all[static_cast<std::size_t>(left.name[i])]);
          r.from.push_back({i});
        }
        for (const int at : order) r.to.push_back({at});
        node = recorder().rearrange(node, std::move(r), std::move(ordered));
      }
      if (axes.size() != wide.size()) node = recorder().broadcast(node, wide, axes);
      if (merged) {
        graph::Rearrangement r;
        r.atoms = wide;
        for (int i = 0; i < right.names; ++i) r.from.push_back({i});
        for (int g = 0, i = 0; g < right.groups; ++g) {
          r.to.emplace_back();
          for (int k = 0; k < right.count[g]; ++k) r.to.back().push_back(i++);
        }
        node = recorder().rearrange(node, std::move(r), Result::shape::shape.dims());
      }
      return TensorOf<typename Result::shape>(node);
    }
  }
}

}  // namespace tessera
