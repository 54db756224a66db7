// concat: tensors joined along an axis.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "dsl/axis_ref.hpp"
#include "dsl/mismatch.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// The only axis along which two tensors of one rank differ; -1 where there is none or another.
constexpr int other_axis(const Shape& a, const Shape& b) {
  int found = -1;
  for (int i = 0; i < a.rank; ++i) {
    if (a[i].lines_up_with(b[i])) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/// Adds how the shorter of two tensors gets the axes that it lacks: a class token, which is one for all images.
constexpr void suggest_repeated_token(Text& t, const AxisRef& axis, const Shape& a, const Shape& b) {
  const Shape &token = a.rank < b.rank ? a : b, &tokens = a.rank < b.rank ? b : a;
  const int joined = axis_index(axis, tokens);
  const Dim one = Dim::constant(1);
  Shape needed = tokens;
  if (joined >= 0) needed.dim[joined] = &one;
  if (suggest_repeat(t, token, needed) && tokens.rank == token.rank + 1) suggest_pooling_instead(t, token, tokens);
}

/// Adds what either tensor has to be so that it agrees with the other, or a token alone: what it is joined to counts.
constexpr void suggest_agreement(Text& t, int joined, const Shape& a, const Shape& b) {
  const Dim one = Dim::constant(1);
  const auto put_agreeing = [&](const Shape& x, const Shape& with) {
    Shape agreeing = with;
    agreeing.dim[joined] = x.dim[joined];
    agreeing.print(t);
  };
  t.put(" (did you mean ");
  if (!(b[joined] == one)) put_agreeing(a, b);
  if (!(a[joined] == one) && !(b[joined] == one)) t.put(" or ");
  if (!(a[joined] == one)) put_agreeing(b, a);
  t.put("?)");
}

/// Everything but the axis that is joined has to agree.
constexpr Text concat_problem(const AxisRef& axis, const Shape* x, int parts) {
  Text t;
  explain_axis(t, "concat", axis, x[0]);
  if (t.size) return t;
  for (int p = 1; p < parts; ++p) {
    bool same = x[p].rank == x[0].rank;
    int i = 0;
    for (; same && i < x[0].rank; ++i)
      if (i != axis_index(axis, x[0]) && !x[p][i].lines_up_with(x[0][i])) break;
    if (same && i == x[0].rank) continue;
    t.put("concat<");
    axis.print(t);
    t.put("> of ");
    x[0].print(t);
    t.put(" and ");
    x[p].print(t);
    if (!same) {
      t.put(": they have ").put(std::int64_t{x[0].rank}).put(" and ").put(std::int64_t{x[p].rank}).put(" axes");
      suggest_repeated_token(t, axis, x[0], x[p]);
    } else if (const int other = other_axis(x[0], x[p]); other >= 0) {
      t.put(": axis ").put(std::int64_t{other}).put(" is ");
      x[0][other].print(t);
      t.put(" and ");
      x[p][other].print(t);
      t.put(", and all others agree (did you mean concat<").put(std::int64_t{other}).put(">?)");
    } else {
      t.put(": axis ").put(std::int64_t{i}).put(" is ");
      x[0][i].print(t);
      t.put(" and ");
      x[p][i].print(t);
      Text idea;
      suggest(idea, x[p][i], x[0][i], i);
      if (x[0].rank != 4 && says_what_was_meant(idea))
        t.put(idea.view());
      else if (!suggest_map_size(t, x[0], x[p]))
        suggest_agreement(t, axis_index(axis, x[0]), x[0], x[p]);
    }
    t.put(" [concat-shape]");
    return t;
  }
  return t;
}

template <class... Es>
struct SumOf;
template <class E>
struct SumOf<E> {
  using type = E;
};
template <class A, class B, class... Es>
struct SumOf<A, B, Es...> {
  using type = typename SumOf<Sum<A, B>, Es...>::type;
};

}  // namespace detail

/// Joins tensors along an axis, whose extents add up: concat<1>(token, tokens) of [B, 1, D] and [B, N, D] is [B, N+1,
/// D]. All other axes agree. Sentences: [concat-shape], [axis-index], [axis-name]. PyTorch equivalent: torch.cat((a,
/// b), dim=axis).
template <AxisRef axis, AnyTensor X, AnyTensor... Xs>
auto concat(const X& x, const Xs&... more) {
  if constexpr (poisoned<X, Xs...> || axis.poisoned) {
    return Poison{};
  } else {
    constexpr int at = axis_index(axis, X::shape);
    constexpr auto problem = [] {
      constexpr Shape shapes[] = {X::shape, Xs::shape...};
      return detail::concat_problem(axis, shapes, 1 + sizeof...(Xs));
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      using Total =
          typename detail::SumOf<typename X::dims::template at<at>, typename Xs::dims::template at<at>...>::type;
      return TensorOf<replace_axis<typename X::dims, at, Total>>(
          recorder().concat({node_of(x), node_of(more)...}, at, Total::value));
    }
  }
}

/// Joins `parts` equal tensors along an axis: concat<2>(heads, H) of H tensors [B, N, K] is [B, N, H*K].
/// The array has to hold H tensors, else [concat-count].
/// PyTorch equivalent: torch.cat(heads, dim=axis).
template <AxisRef axis, AnyTensor X, std::size_t n, DimExpression Parts>
auto concat(const std::array<X, n>& x, Parts) {
  if constexpr (poisoned<X> || axis.poisoned || Parts::poisoned) {
    return Poison{};
  } else {
    constexpr int at = axis_index(axis, X::shape);
    constexpr auto problem = [] {
      Text t;
      explain_axis(t, "concat", axis, X::shape);
      if (t.size || Parts::value == Dim::constant(n) ||
          (Parts::value.known() && Parts::value.value() == std::int64_t{n}))
        return t;
      t.put("concat of ");
      Parts::value.print(t);
      t.put(" tensors was given ").put(std::int64_t{n}).put(" [concat-count]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      using Total = Product<Parts, typename X::dims::template at<at>>;
      std::vector<graph::NodeId> nodes;
      for (const X& part : x) nodes.push_back(node_of(part));
      return TensorOf<replace_axis<typename X::dims, at, Total>>(recorder().concat(std::move(nodes), at, Total::value));
    }
  }
}

}  // namespace tessera
