// softmax: numbers along an axis become probabilities.
#pragma once

#include "dsl/axis_ref.hpp"
#include "dsl/module.hpp"

namespace tessera {

namespace detail {

/// The sentence for a softmax over the first of two equal axes that is not said by name: of scores [.., T, T] it is
/// over the queries, and what attention is over are the keys, which come last.
constexpr void explain_equal_axes(Text& t, const AxisRef& axis, const Shape& x) {
  const int at = axis_index(axis, x);
  if (t.size || at < 0 || axis.name[0]) return;
  int other = at + 1;
  while (other < x.rank && !equal_named_axes(x, at, other)) ++other;
  if (other == x.rank) return;
  t.put("softmax<");
  axis.print(t);
  t.put("> of ");
  x.print(t);
  t.put(": axes ").put(std::int64_t{at}).put(" and ").put(std::int64_t{other}).put(" are both ");
  x[at].print(t);
  t.put("; attention normalises over the keys, the later one (did you mean softmax<");
  t.put(other == x.rank - 1 ? std::int64_t{-1} : std::int64_t{other});
  t.put(">? an alias for one of the two says that axis ").put(std::int64_t{at}).put(" is meant) [axis-equal]");
}

}  // namespace detail

/// exp(x) / sum(exp(x)) along one axis, counted from the front, or from the back when negative. Of two equal axes, as
/// attention scores [B, H, T, T] have, the first is meant by its name alone.
/// Sentences: [axis-index], [axis-name], [axis-equal].
/// PyTorch equivalent: torch.softmax(x, dim=axis).
template <AxisRef axis, AnyTensor X>
auto softmax(const X& x) {
  if constexpr (poisoned<X> || axis.poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      Text t;
      explain_axis(t, "softmax", axis, X::shape);
      detail::explain_equal_axes(t, axis, X::shape);
      return t;
    };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else
      return TensorOf<typename X::dims>(recorder().softmax(node_of(x), axis_index(axis, X::shape)));
  }
}

/// Without an axis: the sentence [axis-missing].
template <AnyTensor X>
auto softmax(const X&) {
  if constexpr (poisoned<X>) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return axis_missing("softmax", X::shape); };
    return Refusal<decltype(problem)>::poison();
  }
}

/// softmax over the last axis as a module, for Sequential. PyTorch equivalent: torch.nn.Softmax(dim=-1).
struct Softmax : Module {
  TESSERA_MEMBERS(Softmax)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return softmax<-1>(x);
  }
};

}  // namespace tessera
