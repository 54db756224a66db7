// split: an axis cut into parts of given sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "dsl/axis_ref.hpp"
#include "dsl/mismatch.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

constexpr Text split_problem(const AxisRef& axis, const Shape& x, const Shape& sizes) {
  Text t;
  explain_axis(t, "split", axis, x);
  if (t.size) return t;
  const Dim& extent = x[axis_index(axis, x)];
  Dim sum = sizes[0];
  bool known = true;
  for (int i = 1; i < sizes.rank; ++i) {
    known &= sizes[i - 1].known();
    sum = sum + sizes[i];
  }
  if (sum.lines_up_with(extent) && known) return t;
  t.put("split<");
  axis.print(t);
  t.put("> of ");
  x.print(t);
  t.put(" into ");
  sizes.print(t);
  if (!known) {
    t.put(": where a part begins is known only when the program runs [dim-unknown]");
    return t;
  }
  t.put(": they add up to ");
  sum.print(t);
  t.put(", and axis ").put(std::int64_t{axis_index(axis, x)}).put(" is ");
  extent.print(t);
  // A number among the sizes that would make them add up.
  const Dim more = extent - sum;
  int at = 0;
  while (at < sizes.rank &&
         !(more.normal.is_constant() && sizes[at].shown.is_constant() && (sizes[at] + more).value() > 0))
    ++at;
  if (at < sizes.rank && !(more == Dim::constant(0))) {
    t.put(" (did you mean split<").put(std::int64_t{axis_index(axis, x)}).put(">(x");
    for (int i = 0; i < sizes.rank; ++i) {
      t.put(", ");
      put_code(t, i == at ? (sizes[i] + more).normal : sizes[i].shown);
    }
    t.put(")?)");
  } else {
    suggest(t, sum, extent, axis_index(axis, x));
  }
  t.put(" [split-size]");
  return t;
}

/// The sum of the first i sizes.
template <class Sizes>
constexpr std::int64_t offset_of(int i) {
  std::int64_t sum = 0;
  for (int k = 0; k < i; ++k) sum += Sizes::shape[k].value();
  return sum;
}

template <int at, class Sizes, class X, int... I>
auto split_each(const X& x, std::integer_sequence<int, I...>) {
  return std::tuple{TensorOf<replace_axis<typename X::dims, at, typename Sizes::template at<I>>>(
      recorder().slice(node_of(x), at, offset_of<Sizes>(I), Sizes::shape[I]))...};
}

}  // namespace detail

/// Cuts an axis into parts of these sizes, which add up to it: auto [token, patches] = split<1>(x, 1_c, N) of [B, N+1,
/// D]. For equal parts, chunk. Sentences: [split-size], [axis-index], [axis-name], [dim-unknown].
/// PyTorch equivalent: x.split([1, n], dim=axis).
template <AxisRef axis, AnyTensor X, DimExpression... Sizes>
auto split(const X& x, Sizes...) {
  static_assert(sizeof...(Sizes) > 0, "split needs the sizes of the parts");
  using Parts = Dims<Sizes...>;
  if constexpr (poisoned<X> || axis.poisoned || Parts::poisoned) {
    return std::tuple{(static_cast<void>(Sizes{}), Poison{})...};
  } else {
    constexpr auto problem = [] { return detail::split_problem(axis, X::shape, Parts::shape); };
    if constexpr (!fits<decltype(problem)>) {
      Refusal<decltype(problem)>::poison();
      return std::tuple{(static_cast<void>(Sizes{}), Poison{})...};
    } else {
      return detail::split_each<axis_index(axis, X::shape), Parts>(x, std::make_integer_sequence<int, Parts::rank>{});
    }
  }
}

}  // namespace tessera
