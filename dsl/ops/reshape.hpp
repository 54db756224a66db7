// reshape: neighbouring axes merged into one, or one axis split, without moving a number.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "dsl/division.hpp"
#include "dsl/mismatch.hpp"
#include "dsl/pattern_plan.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// A run of axes on either side whose products are equal; one side has none where the other has an axis of size 1.
struct ReshapeRun {
  int from = 0, from_end = 0, to = 0, to_end = 0;

  /// Several axes on both sides, whose factors would be interleaved.
  constexpr bool mixes() const { return from_end - from > 1 && to_end - to > 1; }
};

/// How one shape becomes another by merging neighbours and splitting single axes: the shortest runs, from the front.
struct ReshapePlan {
  int runs = 0;
  ReshapeRun run[Shape::capacity]{};
  bool complete = false;  ///< all axes are in runs, but for trailing ones of size 1
};

constexpr Dim product_of(const Shape& s, int begin, int end) {
  Dim product = Dim::constant(1);
  for (int i = begin; i < end; ++i) product = product * s[i];
  return product;
}

/// Whether a run has its factors in one order on both sides.
constexpr bool lines_up(const Shape& x, const Shape& to, const ReshapeRun& run) {
  return product_of(x, run.from, run.from_end).nests_as(product_of(to, run.to, run.to_end));
}

constexpr bool find_run(const Shape& x, const Shape& to, ReshapeRun& run) {
  const int lefts = x.rank - run.from, rights = to.rank - run.to;
  for (int axes = 2; axes <= lefts + rights; ++axes)
    for (int left = 1; left < axes && left <= lefts; ++left) {
      run.from_end = run.from + left;
      run.to_end = run.to + axes - left;
      if (run.to_end > to.rank || !(product_of(x, run.from, run.from_end) == product_of(to, run.to, run.to_end)))
        continue;
      if (axes > 2 || x[run.from].lines_up_with(to[run.to])) return true;
    }
  return false;
}

constexpr ReshapePlan plan_reshape(const Shape& x, const Shape& to) {
  ReshapePlan plan;
  ReshapeRun next;
  while (next.from < x.rank && next.to < to.rank) {
    const Dim one = Dim::constant(1);
    const bool found = find_run(x, to, next);
    if (!found || next.mixes()) {
      // An axis of size 1 has no partner, wherever it stands.
      if (to[next.to] == one) {
        next.from_end = next.from;
        next.to_end = next.to + 1;
      } else if (x[next.from] == one) {
        next.from_end = next.from + 1;
        next.to_end = next.to;
      } else if (!found) {
        return plan;
      }
    }
    plan.run[plan.runs++] = next;
    next.from = next.from_end;
    next.to = next.to_end;
  }
  const Dim one = Dim::constant(1);
  plan.complete = product_of(x, next.from, x.rank) == one && product_of(to, next.to, to.rank) == one;
  return plan;
}

constexpr void put_names(Text& t, const Shape& s, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    if (i > begin) t.put(", ");
    s[i].shown.print(t);
  }
}

constexpr Text reshape_problem(const Shape& x, const Shape& to) {
  Text t;
  const ReshapePlan plan = plan_reshape(x, to);
  int mixed = 0;
  while (mixed < plan.runs && !plan.run[mixed].mixes()) ++mixed;
  int crossed = 0;
  while (crossed < plan.runs && lines_up(x, to, plan.run[crossed])) ++crossed;
  if (plan.complete && mixed == plan.runs && crossed == plan.runs) return t;
  t.put("reshape ");
  x.print(t);
  t.put(" -> ");
  to.print(t);
  if (!plan.complete) {
    t.put(": they do not hold equally many numbers, by their names");
    for (int i = 1; i < x.rank; ++i)
      if (product_of(x, 0, i) * (x[i] - Dim::constant(1)) * product_of(x, i + 1, x.rank) ==
          product_of(to, 0, to.rank)) {
        const Dim rest = x[i] - Dim::constant(1);
        bool reads = true;  // N of N + 1, not T - 1
        for (int k = 0; k < rest.shown.terms; ++k) reads &= rest.shown.term[k].coefficient > 0;
        t.put(" (axis ").put(std::int64_t{i}).put(" is one too long: does it still hold the class token? ");
        suggest_slice(t, i, Polynomial::constant(1), reads ? rest.shown : rest.normal);
        t.put(")");
        break;
      }
    t.put(" [reshape-size]");
    return t;
  }
  if (mixed == plan.runs) {
    const ReshapeRun& run = plan.run[crossed];
    t.put(" moves no number, and has the factors of an axis in another order: ");
    product_of(x, run.from, run.from_end).print_factors(t);
    t.put(" is not ");
    product_of(to, run.to, run.to_end).print_factors(t);
    if (!suggest_rearrange(t, "; ", x, to)) t.put("; say where each factor goes with rearrange");
    t.put(" [reshape-mixes]");
    return t;
  }
  t.put(" mixes numbers that do not belong together: ");
  put_names(t, x, plan.run[mixed].from, plan.run[mixed].from_end);
  t.put(" are interleaved into ");
  put_names(t, to, plan.run[mixed].to, plan.run[mixed].to_end);
  if (!suggest_rearrange(t, "; ", x, to)) {
    t.put("; say where each factor goes");
    t.put(x.rank == 4 && to.rank == 3 ? ", for patches: rearrange<b c (gh p) (gw q) -> b (gh gw) (c p q)>"
                                      : " with rearrange");
  }
  t.put(" [reshape-mixes]");
  return t;
}

/// What is left of two shapes when axes that both have are left out.
struct InferPlan {
  int infers = 0;
  bool from[Shape::capacity]{}, to[Shape::capacity]{};  ///< what is left
  Dim product = Dim::constant(1), divisor = Dim::constant(1);
};

}  // namespace detail

/// An axis of a reshape whose size follows from the others: reshape<B, infer, D>(x).
struct Infer : Expression {
  static constexpr bool poisoned = false;
  static constexpr Dim value = Dim::axis("infer");
};
inline constexpr Infer infer;

namespace detail {

constexpr InferPlan plan_infer(const Shape& x, const Shape& to) {
  InferPlan plan;
  for (int i = 0; i < x.rank; ++i) plan.from[i] = true;
  for (int k = 0; k < to.rank; ++k) {
    if (to[k] == Infer::value) {
      ++plan.infers;
      continue;
    }
    int i = 0;
    while (i < x.rank && !(plan.from[i] && x[i] == to[k])) ++i;
    if (i < x.rank)
      plan.from[i] = false;
    else
      plan.to[k] = true;
  }
  for (int i = 0; i < x.rank; ++i)
    if (plan.from[i]) plan.product = plan.product * x[i];
  for (int k = 0; k < to.rank; ++k)
    if (plan.to[k]) plan.divisor = plan.divisor * to[k];
  return plan;
}

constexpr Text infer_problem(const Shape& x, const Shape& to) {
  Text t;
  const InferPlan plan = plan_infer(x, to);
  const Division division = divide(plan.product, plan.divisor);
  if (plan.infers == 1 && division.result == Division::Result::exact) return t;
  t.put("reshape ");
  x.print(t);
  t.put(" -> ");
  to.print(t);
  if (plan.infers > 1) {
    t.put(": only one axis can follow from the others [reshape-infer]");
  } else {
    t.put(": infer does not follow: ");
    division.explain(t, plan.product, plan.divisor);
  }
  return t;
}

/// To with the dim that infer stands for.
template <class D, class To, class Indices, class ToIndices>
struct Inferred;
template <class... Es, class... Ts, int... I, int... K>
struct Inferred<Dims<Es...>, Dims<Ts...>, std::integer_sequence<int, I...>, std::integer_sequence<int, K...>> {
  static constexpr InferPlan plan = plan_infer(Dims<Es...>::shape, Dims<Ts...>::shape);
  using Whole = typename ProductOf<std::conditional_t<plan.from[I], Es, Constant<1>>...>::type;
  using Others = typename ProductOf<std::conditional_t<plan.to[K], Ts, Constant<1>>...>::type;
  using type = Dims<std::conditional_t<std::is_same_v<Ts, Infer>, Quotient<Whole, Others>, Ts>...>;
};

/// What reshape<To...> of X makes: Result::type, where problem() has nothing to say.
template <class X, class To>
struct ReshapeOf {
  using Result = std::type_identity<To>;
  static constexpr Text problem() { return reshape_problem(X::shape, To::shape); }
};
template <class X, class... Ts>
  requires(std::is_same_v<Ts, Infer> || ...)
struct ReshapeOf<X, Dims<Ts...>> {
  using Result = Inferred<typename X::dims, Dims<Ts...>, std::make_integer_sequence<int, X::shape.rank>,
                          std::make_integer_sequence<int, sizeof...(Ts)>>;
  static constexpr Text problem() {
    constexpr bool follows = infer_problem(X::shape, Dims<Ts...>::shape).size == 0;
    if constexpr (follows)
      return reshape_problem(X::shape, Result::type::shape);
    else
      return infer_problem(X::shape, Dims<Ts...>::shape);
  }
};

template <class To, class X>
auto reshaped(const X& x) {
  // Within a run, the side with more axes has the atoms.
  constexpr ReshapePlan plan = plan_reshape(X::shape, To::shape);
  graph::Rearrangement r;
  r.from.resize(static_cast<std::size_t>(X::shape.rank));
  r.to.resize(static_cast<std::size_t>(To::rank));
  for (int i = 0; i < plan.runs; ++i) {
    const ReshapeRun& run = plan.run[i];
    if (run.from == run.from_end || run.to == run.to_end) continue;
    const bool merges = run.to_end - run.to == 1;
    const int begin = merges ? run.from : run.to, end = merges ? run.from_end : run.to_end;
    for (int axis = begin; axis < end; ++axis) {
      const int atom = static_cast<int>(r.atoms.size());
      r.atoms.push_back(merges ? X::shape[axis] : To::shape[axis]);
      r.from[static_cast<std::size_t>(merges ? axis : run.from)].push_back(atom);
      r.to[static_cast<std::size_t>(merges ? run.to : axis)].push_back(atom);
    }
  }
  return TensorOf<To>(recorder().rearrange(node_of(x), std::move(r), To::shape.dims()));
}

}  // namespace detail

/// Merges neighbouring axes into one and splits single axes: reshape<B, N * D>(x) of [B, N, D]. One axis may be left to
/// follow from the others: reshape<B, infer, K>(x). Anything that would interleave several axes is refused, although it
/// holds equally many numbers: that is how an image reshaped straight to patches mixes the pixels of different patches.
/// Sentences: [reshape-mixes], [reshape-size], [reshape-infer], and [dim-division], [dim-factor] for what cannot be
/// inferred. PyTorch equivalent: x.reshape(...), where it merges and splits only; infer is its -1.
template <DimExpression auto... To, AnyTensor X>
auto reshape(const X& x) {
  using Wanted = typename Tensor<To...>::dims;
  if constexpr (poisoned<X> || Wanted::poisoned) {
    return Poison{};
  } else {
    using Of = detail::ReshapeOf<X, Wanted>;
    constexpr auto problem = [] { return Of::problem(); };
    if constexpr (!fits<decltype(problem)>)
      return Refusal<decltype(problem)>::poison();
    else
      return detail::reshaped<typename Of::Result::type>(x);
  }
}

}  // namespace tessera
