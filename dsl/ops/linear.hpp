// linear: a map of the last axis by a weight; Linear: a learned affine one.
#pragma once

#include <cmath>
#include <type_traits>
#include <vector>

#include "dsl/division.hpp"
#include "dsl/mismatch.hpp"
#include "dsl/module.hpp"
#include "dsl/ops/arithmetic.hpp"

namespace tessera {

namespace detail {

/// Adds what may have been meant where x ends in another axis than `in`: a map the other way round, heads that are
/// still to be merged, an axis that is to go last; else what may have been meant by the axis itself.
constexpr void suggest_linear(Text& t, const Shape& x, const Dim& in, const Dim& out) {
  const int last = x.rank - 1;
  if (x.back() == out && !(in == out)) {
    t.put(" (a weight is [Out, In]: did you mean ");
    out.shown.print(t);
    t.put(" -> ");
    in.shown.print(t);
    t.put(", the transposed weight, or Linear<");
    out.shown.print(t);
    t.put(", ");
    in.shown.print(t);
    t.put("> before it?)");
    return;
  }
  for (int i = 0; i < last; ++i) {
    const bool merges = x[i] * x[last] == in;
    if (!merges && !(x[i] == in)) continue;
    Shape needed;
    for (int k = 0; k < x.rank; ++k)
      if (k != i && !(merges && k == last)) needed.dim[needed.rank++] = x.dim[k];
    needed.dim[needed.rank++] = &in;
    t.put(" (");
    put_definition(t, "", in, "; ");
    if (suggest_rearrange(t, "", x, needed)) {
      t.put(")");
      return;
    }
    t.put("axis ").put(std::int64_t{i}).put(merges ? " has to be merged into it)" : " would fit)");
    return;
  }
  if (const Division times = divide(x.back(), in);
      !is_name(x.back()) && times.result == Division::Result::exact && !times.quotient.shown.is_constant()) {
    t.put(" (");
    times.quotient.print(t);
    t.put(" times as long: did you mean Linear<");
    const bool outer = (times.quotient * in).nests_as(x.back());
    put_code(t, outer ? times.quotient.shown : in.shown);
    t.put(" * ");
    put_code(t, outer ? in.shown : times.quotient.shown);
    t.put(", ");
    put_code(t, out.shown);
    t.put(">?)");
    return;
  }
  Text layer;
  if (x.rank == 2) {
    layer.put("a mean over another axis, or ");
  } else if (is_name(out) && !(in == out)) {
    layer.put("Linear<");
    x.back().shown.print(layer);
    layer.put(", ");
    out.shown.print(layer);
    layer.put(">, or ");
  }
  suggest(t, x.back(), in, last, layer.put("a ").view());
}

constexpr Text linear_problem(const Shape& x, const Dim& in, const Dim& out) {
  Text t;
  if (x.rank && x.back().lines_up_with(in)) return t;
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
  if (x.rank) suggest_linear(t, x, in, out);
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
      t.put("linear of ");
      X::shape.print(t);
      t.put(" needs a weight [Out, In] and was given ");
      W::shape.print(t);
      t.put(": it has ").put(std::int64_t{W::shape.rank}).put(W::shape.rank == 1 ? " axis" : " axes");
      t.put(", needs 2 (did you mean the weight in place of the bias?) [linear-weight]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
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
template <auto In, auto Out>
struct Linear : Module {
  static double bound() { return detail::fan_in_bound<detail::dim_of<In>>(); }

  Parameter<Out, In> weight{with_decay(uniform(-bound(), bound()))};
  Parameter<Out> bias{uniform(-bound(), bound())};
  TESSERA_MEMBERS(Linear, weight, bias)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return linear(x, weight) + bias;
  }
};

}  // namespace tessera
