// permute and transpose: axes change places.
#pragma once

#include <utility>
#include <vector>

#include "dsl/axis_list.hpp"
#include "dsl/ops/reordered.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// The axes in another order: axis i of the result is the i-th that is given; permute<0, 2, 1>(x), permute<B, D, N>(x).
/// Every axis is given once. Sentences: [permute-axes], [axis-twice], [axis-index], [axis-name].
/// PyTorch equivalent: x.permute(axes).
template <AxisRef... axes, AnyTensor X>
auto permute(const X& x) {
  if constexpr (poisoned<X> || (axes.poisoned || ...)) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      using List = detail::AxisList<typename X::dims, axes...>;
      Text t;
      List::explain(t, "permute");
      if (t.size || List::size == X::shape.rank) return t;
      List::begin(t, "permute");
      t.put("it has ").put(std::int64_t{X::shape.rank}).put(" axes, and ").put(std::int64_t{List::size});
      t.put(List::size == 1 ? " is" : " are").put(" given [permute-axes]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else
      return TensorOf<Dims<typename X::dims::template at<axis_index(axes, X::shape)>...>>(
          detail::reordered(node_of(x), {axis_index(axes, X::shape)...}));
  }
}

namespace detail {

template <int a, int b, class X, int... I>
auto swapped(const X& x, std::integer_sequence<int, I...>) {
  return permute<AxisRef(I == a ? b : I == b ? a : I)...>(x);
}

}  // namespace detail

/// Two axes change places: transpose<-2, -1>(x). Sentences: [axis-twice], [axis-index], [axis-name].
/// PyTorch equivalent: x.transpose(a, b).
template <AxisRef a, AxisRef b, AnyTensor X>
auto transpose(const X& x) {
  if constexpr (poisoned<X> || a.poisoned || b.poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      Text t;
      detail::AxisList<typename X::dims, a, b>::explain(t, "transpose");
      return t;
    };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else
      return detail::swapped<axis_index(a, X::shape), axis_index(b, X::shape)>(
          x, std::make_integer_sequence<int, X::shape.rank>{});
  }
}

}  // namespace tessera
