// reshape: neighbouring axes merged into one, or one axis split, without moving a number.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "dsl/mismatch.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// A run of axes on either side whose products are equal.
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

constexpr bool find_run(const Shape& x, const Shape& to, ReshapeRun& run) {
  const int lefts = x.rank - run.from, rights = to.rank - run.to;
  for (int axes = 2; axes <= lefts + rights; ++axes)
    for (int left = 1; left < axes && left <= lefts; ++left) {
      run.from_end = run.from + left;
      run.to_end = run.to + axes - left;
      if (run.to_end <= to.rank && product_of(x, run.from, run.from_end) == product_of(to, run.to, run.to_end))
        return true;
    }
  return false;
}

constexpr ReshapePlan plan_reshape(const Shape& x, const Shape& to) {
  ReshapePlan plan;
  ReshapeRun next;
  while (next.from < x.rank && next.to < to.rank) {
    if (!find_run(x, to, next)) return plan;
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
  if (plan.complete && mixed == plan.runs) return t;
  t.put("reshape ");
  x.print(t);
  t.put(" -> ");
  to.print(t);
  if (!plan.complete) {
    t.put(": they do not hold equally many numbers, by their names [reshape-size]");
    return t;
  }
  t.put(" mixes numbers that do not belong together: ");
  put_names(t, x, plan.run[mixed].from, plan.run[mixed].from_end);
  t.put(" are interleaved into ");
  put_names(t, to, plan.run[mixed].to, plan.run[mixed].to_end);
  t.put("; say where each factor goes");
  t.put(x.rank == 4 && to.rank == 3 ? ", for patches: rearrange<b c (gh p) (gw q) -> b (gh gw) (c p q)>"
                                    : " with rearrange");
  t.put(" [reshape-mixes]");
  return t;
}

}  // namespace detail

/// Merges neighbouring axes into one and splits single axes: reshape<B, N * D>(x) of [B, N, D]. Anything that would
/// interleave several axes is refused, although it holds equally many numbers: that is how an image reshaped straight
/// to patches mixes the pixels of different patches. Sentences: [reshape-mixes], [reshape-size]. PyTorch equivalent:
/// x.reshape(...), where it merges and splits only.
template <DimExpression auto... To, AnyTensor X>
auto reshape(const X& x) {
  using Result = Tensor<To...>;
  if constexpr (poisoned<X, Result>) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::reshape_problem(X::shape, Result::shape); };
    if constexpr (!fits<decltype(problem)>) {
      return refuse<decltype(problem)>();
    } else {
      // Within a run, the side with more axes has the atoms.
      constexpr detail::ReshapePlan plan = detail::plan_reshape(X::shape, Result::shape);
      graph::Rearrangement r;
      r.from.resize(static_cast<std::size_t>(X::shape.rank));
      r.to.resize(static_cast<std::size_t>(Result::shape.rank));
      for (int i = 0; i < plan.runs; ++i) {
        const detail::ReshapeRun& run = plan.run[i];
        const bool merges = run.to_end - run.to == 1;
        const int begin = merges ? run.from : run.to, end = merges ? run.from_end : run.to_end;
        for (int axis = begin; axis < end; ++axis) {
          const int atom = static_cast<int>(r.atoms.size());
          r.atoms.push_back(merges ? X::shape[axis] : Result::shape[axis]);
          r.from[static_cast<std::size_t>(merges ? axis : run.from)].push_back(atom);
          r.to[static_cast<std::size_t>(merges ? run.to : axis)].push_back(atom);
        }
      }
      return Result(recorder().rearrange(node_of(x), std::move(r), Result::shape.dims()));
    }
  }
}

}  // namespace tessera
