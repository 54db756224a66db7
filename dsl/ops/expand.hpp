// expand: a tensor repeated along the axes of another shape, which are matched by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dsl/ops/reordered.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// Which axis of the result each axis of x becomes; -1: it has size 1 and is stretched.
struct ExpandPlan {
  int place[Shape::capacity]{};
  Text problem{};
};

/// An axis goes to the one that is shown alike, else to the one that equals it.
constexpr ExpandPlan plan_expand(const Shape& x, const Shape& to) {
  ExpandPlan plan;
  bool taken[Shape::capacity]{};
  for (int i = 0; i < x.rank; ++i) {
    int found = -1, second = -1;
    for (const bool by_name : {true, false}) {
      if (found >= 0) break;
      for (int k = 0; k < to.rank; ++k) {
        if (!x[i].lines_up_with(to[k]) || (by_name && !(x[i].shown == to[k].shown))) continue;
        (found < 0 ? found : second) = k;
      }
    }
    const bool stretched = found < 0 && x[i] == Dim::constant(1);
    plan.place[i] = found;
    if (stretched) continue;
    if (found >= 0 && second < 0 && !taken[found]) {
      taken[found] = true;
      continue;
    }
    Text& t = plan.problem;
    t.put("expand ");
    x.print(t);
    t.put(" to ");
    to.print(t);
    t.put(": axis ").put(std::int64_t{i}).put(" is ");
    x[i].print(t);
    if (found < 0) {
      t.put(", and none of the result is");
      for (int k = 0; k < to.rank; ++k) {
        if (!x[i].known() || !to[k].known() || x[i].value() != to[k].value()) continue;
        t.put(" (axis ")
            .put(std::int64_t{k})
            .put(" has its size and another name: if they mean the same, say so with ");
        t.put("rename<").put(std::int64_t{i}).put(">(x, ");
        to[k].shown.print(t);
        t.put("))");
        break;
      }
    } else if (second >= 0) {
      t.put(", and axes ").put(std::int64_t{found}).put(" and ").put(std::int64_t{second});
      t.put(" of the result both are; declare it with an alias for one of them");
    } else {
      t.put(", which axis ").put(std::int64_t{found}).put(" of the result can be only once");
    }
    t.put(" [expand-axis]");
    return plan;
  }
  return plan;
}

template <class D, class X>
auto expanded(const X& x) {
  if constexpr (poisoned<X> || D::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return plan_expand(X::shape, D::shape).problem; };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      constexpr ExpandPlan plan = plan_expand(X::shape, D::shape);
      std::vector<int> order, axes;
      for (int k = 0; k < D::rank; ++k)
        for (int i = 0; i < X::shape.rank; ++i)
          if (plan.place[i] == k) {
            order.push_back(i);
            axes.push_back(k);
          }
      graph::NodeId node = node_of(x);
      bool as_it_is = static_cast<int>(order.size()) == X::shape.rank;
      for (std::size_t i = 0; i < order.size(); ++i) as_it_is &= order[i] == static_cast<int>(i);
      if (!as_it_is) node = reordered(node, order);
      if (static_cast<int>(axes.size()) != D::rank) node = recorder().broadcast(node, D::shape.dims(), axes);
      return TensorOf<D>(node);
    }
  }
}

}  // namespace detail

/// Repeats x along the axes that it lacks: expand<B, H, N, K>(x) of [H, K], in any order. Axes are matched by name:
/// each axis of x goes to the one that is shown alike, else to the only one that equals it; one of size 1 that is in no
/// place is stretched. Sentence: [expand-axis]. PyTorch equivalent: x[:, None].expand(b, h, n, k), with the axes put in
/// place by hand.
template <DimExpression auto... To, AnyTensor X>
auto expand(const X& x) {
  return detail::expanded<typename Tensor<To...>::dims>(x);
}

/// Repeats x along the axes of `other`, so that they can be added: scores + expand_as(bias, scores). As expand.
/// PyTorch equivalent: x.expand_as(other), with the axes put in place by hand.
template <AnyTensor X, AnyTensor Other>
auto expand_as(const X& x, const Other&) {
  if constexpr (poisoned<X, Other>)
    return Poison{};
  else
    return detail::expanded<typename Other::dims>(x);
}

}  // namespace tessera
