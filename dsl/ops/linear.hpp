// linear: a map of the last axis by a weight; Linear: a learned affine one.
#pragma once

#include <cmath>
#include <type_traits>
#include <vector>

#include "dsl/mismatch.hpp"
#include "dsl/module.hpp"
#include "dsl/ops/arithmetic.hpp"

namespace tessera {

namespace detail {

/// Adds a rearrange that would merge two axes of x into `needed`, if there are two: "b h n k -> b n (h k)".
constexpr void suggest_merge(Text& t, const Shape& x, const Dim& needed) {
  if (x.rank < 3) return;
  char letter[Shape::capacity]{};
  for (int i = 0; i < x.rank; ++i) {
    const Polynomial& shown = x[i].shown;
    for (int k = 0; k < shown.terms && !letter[i]; ++k)
      if (shown.term[k].factors) letter[i] = shown.term[k].factor[0].name[0];
    if (letter[i] >= 'A' && letter[i] <= 'Z') letter[i] = static_cast<char>(letter[i] - 'A' + 'a');
    if (letter[i] < 'a' || letter[i] > 'z') return;
    for (int k = 0; k < i; ++k)
      if (letter[k] == letter[i]) return;
  }
  const int last = x.rank - 1;
  for (int i = 0; i < last; ++i) {
    if (!(x[i] * x[last] == needed)) continue;
    t.put("; did you mean rearrange<");
    for (int k = 0; k < x.rank; ++k) t.put({&letter[k], 1}).put(" ");
    t.put("->");
    for (int k = 0; k < last; ++k)
      if (k != i) t.put(" ").put({&letter[k], 1});
    t.put(" (").put({&letter[i], 1}).put(" ").put({&letter[last], 1}).put(")>?");
    return;
  }
}

constexpr Text linear_problem(const Shape& x, const Dim& in, const Dim& out) {
  Text t;
  if (x.rank && x.back() == in) return t;
  t.put("linear (");
  in.print(t);
  t.put(" -> ");
  out.print(t);
  t.put(") cannot take ");
  x.print(t);
  if (x.rank) {
    t.put(": it ends in ");
    x.back().print(t);
  } else {
    t.put(": it has no axis");
  }
  t.put(", needs ");
  in.print(t);
  if (x.rank) {
    suggest(t, x.back(), in, x.rank - 1);
    suggest_merge(t, x, in);
  }
  t.put(" [linear-input]");
  return t;
}

}  // namespace detail

/// x W^T over the last axis, with a weight [Out, In]: [..., In] -> [..., Out].
/// Sentences: [linear-input], [linear-weight].
/// PyTorch equivalent: torch.nn.functional.linear(x, weight).
template <AnyTensor X, AnyTensor W>
auto linear(const X& x, const W& weight) {
  if constexpr (poisoned<X, W>) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      if constexpr (W::shape.rank == 2) return detail::linear_problem(X::shape, W::shape[1], W::shape[0]);
      Text t;
      t.put("linear needs a weight [Out, In] and was given ");
      W::shape.print(t);
      t.put(" [linear-weight]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      return refuse<decltype(problem)>();
    } else {
      constexpr int last = X::shape.rank - 1;
      std::vector<int> letters, result;
      for (int i = 0; i <= last; ++i) letters.push_back(i);
      result = letters;
      result.back() = last + 1;
      return TensorOf<replace_axis<typename X::dims, last, typename W::dims::template at<0>>>(
          recorder().einsum({node_of(x), node_of(weight)}, {letters, {last + 1, last}, result}));
    }
  }
}

namespace detail {

/// 1/sqrt(fan_in), the bound of PyTorch's starting values of linear maps and convolutions.
template <DimExpression In>
double fan_in_bound() {
  return 1 / std::sqrt(static_cast<double>(In::value.value()));
}

}  // namespace detail

/// y = x W^T + b over the last axis: [..., In] -> [..., Out]. Keys: weight [Out, In], bias [Out]. Both start uniform in
/// +-1/sqrt(In), as PyTorch's do. Weight decay applies to the weight only. Sentence: [linear-input].
/// PyTorch equivalent: torch.nn.Linear(In, Out).
template <DimExpression auto In, DimExpression auto Out>
struct Linear : Module {
  static double bound() { return detail::fan_in_bound<std::remove_cv_t<decltype(In)>>(); }

  Parameter<Out, In> weight{with_decay(uniform(-bound(), bound()))};
  Parameter<Out> bias{uniform(-bound(), bound())};
  TESSERA_MEMBERS(Linear, weight, bias)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return linear(x, weight) + bias;
  }
};

}  // namespace tessera
