// stack: tensors of one shape along a new axis.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dsl/mismatch.hpp"
#include "dsl/ops/reordered.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

constexpr Text stack_problem(int axis, const Shape* x, int count) {
  Text t;
  const int rank = x[0].rank;
  for (int i = 1; i < count; ++i) {
    if (x[i] == x[0]) continue;
    t.put("stack<").put(std::int64_t{axis}).put("> of ");
    x[0].print(t);
    t.put(" and ");
    x[i].print(t);
    t.put(": ");
    explain_mismatch(t, x[i], x[0]);
    t.put(" [stack-tensors]");
    return t;
  }
  if (axis >= -rank - 1 && axis <= rank) return t;
  t.put("stack<").put(std::int64_t{axis}).put("> of ");
  x[0].print(t);
  t.put(": the new axis can be 0 to ").put(std::int64_t{rank}).put(" [axis-index]");
  return t;
}

/// D with a new axis E, which becomes axis I.
template <class E, class D>
struct InsertAxis;
template <class E, class... Es>
struct InsertAxis<E, Dims<Es...>> {
  using all = Dims<E, Es...>;
  template <int I, int... Is>
  static Dims<typename all::template at<(Is == I  ? 0
                                         : Is < I ? Is + 1
                                                  : Is)>...>
      at(std::integer_sequence<int, Is...>);
};
template <class D, int I, class E>
using insert_axis = decltype(InsertAxis<E, D>::template at<I>(std::make_integer_sequence<int, D::rank + 1>{}));

/// Joins nodes of shape D along a new axis.
template <class D, int at, class Count>
auto stacked(std::vector<graph::NodeId> nodes) {
  std::vector<int> order = axes_but(-1, D::rank);
  order.insert(order.begin() + at, -1);
  for (graph::NodeId& node : nodes) node = reordered(node, order);
  return TensorOf<insert_axis<D, at, Count>>(recorder().concat(std::move(nodes), at, Count::value));
}

}  // namespace detail

/// Tensors of one shape along a new axis, which becomes axis `axis` of the result, counted from the back when negative:
/// stack<0>(q, k, v) of [B, N, D] is [3, B, N, D]. Sentences: [stack-tensors], [axis-index].
/// PyTorch equivalent: torch.stack((q, k, v), dim=axis).
template <int axis, AnyTensor X, AnyTensor... Xs>
auto stack(const X& x, const Xs&... more) {
  if constexpr (poisoned<X, Xs...>) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      constexpr Shape shapes[] = {X::shape, Xs::shape...};
      return detail::stack_problem(axis, shapes, 1 + sizeof...(Xs));
    };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else
      return detail::stacked<typename X::dims, (axis < 0 ? axis + X::shape.rank + 1 : axis),
                             Constant<1 + sizeof...(Xs)>>({node_of(x), node_of(more)...});
  }
}

/// The tensors of an array along a new axis: stack<1>(heads, H) of H tensors [B, N, K] is [B, H, N, K].
/// The array has to hold H tensors, else [stack-tensors]. Sentence: [axis-index].
/// PyTorch equivalent: torch.stack(heads, dim=axis).
template <int axis, AnyTensor X, std::size_t n, DimExpression Count>
auto stack(const std::array<X, n>& x, Count) {
  if constexpr (poisoned<X> || Count::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      Text t = detail::stack_problem(axis, &X::shape, 1);
      if (t.size || (Count::value.known() && Count::value.value() == std::int64_t{n})) return t;
      t.put("stack of ");
      Count::value.print(t);
      t.put(" tensors was given ").put(std::int64_t{n}).put(" [stack-tensors]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      std::vector<graph::NodeId> nodes;
      for (const X& part : x) nodes.push_back(node_of(part));
      return detail::stacked<typename X::dims, (axis < 0 ? axis + X::shape.rank + 1 : axis), Count>(std::move(nodes));
    }
  }
}

}  // namespace tessera
