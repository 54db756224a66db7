// einsum: products of tensors, summed over the letters that the result does not have.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "dsl/axis_ref.hpp"
#include "dsl/pattern.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// An einsum solved for the shapes of its operands.
struct EinsumPlan {
  Pattern pattern{};
  int operand[Pattern::capacity]{};  ///< of each letter: an operand that has it
  int axis[Pattern::capacity]{};     ///< and as which axis
  Text problem{};
};

/// Adds the sentence for a sum over the first of two equal axes that end what every image has its own of: probabilities
/// [B, H, T, T] that are summed over their queries. A weight [D, D], which has no batch, may be read either way.
constexpr void explain_sum_over_queries(EinsumPlan& plan, std::string_view text, const Shape* x, int operands) {
  const Pattern& p = plan.pattern;
  const auto kept = [&](int name) {
    for (int i = 0; i < p.result.names; ++i)
      if (p.result.name[i] == name) return true;
    return false;
  };
  for (int o = 0; operands == 2 && o < operands; ++o) {
    const PatternSide& side = p.operand[o];
    const int keys = x[o].rank - 1, queries = keys - 1;
    if (queries < 1 || x[o][0].known() || !equal_named_axes(x[o], queries, keys)) continue;
    if (kept(side.name[queries]) || !kept(side.name[keys])) continue;
    Text& t = plan.problem;
    put_pattern(t, "einsum", text, side.position[queries]);
    t.put(p.name[side.name[queries]]).put(", which is summed over, and ").put(p.name[side.name[keys]]).put(" of ");
    x[o].print(t);
    t.put(" are both ");
    x[o][keys].print(t);
    t.put("; attention sums over the keys, the later one (did you mean ");
    for (int n = 0; n < side.names; ++n)
      t.put(n ? " " : "").put(p.name[side.name[n == queries ? keys : n == keys ? queries : n]]);
    t.put(" for it? rename says that the first is meant) [axis-equal]");
    return;
  }
}

constexpr EinsumPlan solve_einsum(std::string_view text, const Shape* x, int operands) {
  EinsumPlan plan;
  Pattern& p = plan.pattern;
  Text& t = plan.problem;
  p = parse_pattern_for(text, x[0].rank);
  explain_pattern(t, "einsum", p);
  if (t.size) return plan;
  if (p.operands != operands) {
    put_pattern(t, "einsum", text, 0);
    t.put("the pattern has ").put(std::int64_t{p.operands}).put(" operands and was given ").put(std::int64_t{operands});
    t.put(" [pattern-rank]");
    return plan;
  }
  bool seen[Pattern::capacity]{};
  int where[Pattern::capacity]{};
  for (int o = 0; o <= operands; ++o) {
    const PatternSide& side = o < operands ? p.operand[o] : p.result;
    for (int g = 0; g < side.groups; ++g) {
      if (!side.bracket[g] && side.count[g] == 1 && !p.number[side.name[side.first[g]]]) continue;
      put_pattern(t, "einsum", text, side.count[g] ? side.position[side.first[g]] : 0);
      t.put("an einsum has plain names only, no brackets and no numbers; use rearrange for those [pattern-syntax]");
      return plan;
    }
    if (o < operands && side.groups != x[o].rank) {
      put_pattern(t, "einsum", text, 0);
      t.put("operand ")
          .put(std::int64_t{o})
          .put(" has ")
          .put(std::int64_t{side.groups})
          .put(" letters, and the tensor is ");
      x[o].print(t);
      t.put(" [pattern-rank]");
      return plan;
    }
    for (int i = 0; i < side.names; ++i) {
      const int n = side.name[i];
      if (o == operands) {
        if (seen[n]) continue;
        put_pattern(t, "einsum", text, side.position[i]);
        t.put(p.name[n]).put(" stands on the right only [pattern-names]");
        return plan;
      }
      if (!seen[n]) {
        seen[n] = true;
        plan.operand[n] = o;
        plan.axis[n] = i;
        where[n] = side.position[i];
        continue;
      }
      const Dim& first = x[plan.operand[n]][plan.axis[n]];
      const Dim& second = x[o][i];
      if (first.lines_up_with(second)) continue;
      put_pattern(t, "einsum", text, side.position[i]);
      t.put(p.name[n]).put(" is ");
      second.print(t);
      t.put(" of ");
      x[o].print(t);
      t.put(", but at ").put(std::int64_t{where[n]}).put(" it is ");
      first.print(t);
      t.put(" of ");
      x[plan.operand[n]].print(t);
      int elsewhere = 0;
      while (elsewhere < x[o].rank && !x[o][elsewhere].lines_up_with(first)) ++elsewhere;
      if (elsewhere < x[o].rank) {
        // The letters of the two axes, swapped.
        t.put(" (did you mean ");
        for (int k = 0; k < side.names; ++k)
          t.put(k ? " " : "").put(p.name[side.name[k == i ? elsewhere : k == elsewhere ? i : k]]);
        t.put(" for it?)");
      } else {
        suggest(t, second, first, i, i == x[o].rank - 1 ? "a " : "");
      }
      t.put(" [einsum-letter]");
      return plan;
    }
  }
  explain_sum_over_queries(plan, text, x, operands);
  return plan;
}

template <fixed_string P, class... Xs>
struct SolvedEinsum {
  static constexpr std::array<Shape, sizeof...(Xs)> shapes{Xs::shape...};
  static constexpr EinsumPlan plan = solve_einsum(P.view(), shapes.data(), sizeof...(Xs));

  constexpr Text operator()() const { return plan.problem; }
};

template <class Solved, class Indices, class... Xs>
struct EinsumResult;
template <class Solved, int... I, class... Xs>
struct EinsumResult<Solved, std::integer_sequence<int, I...>, Xs...> {
  static constexpr auto& plan = Solved::plan;

  template <int N>
  using letter = typename std::tuple_element_t<static_cast<std::size_t>(plan.operand[N]),
                                               std::tuple<typename Xs::dims...>>::template at<plan.axis[N]>;
  using shape = Dims<letter<plan.pattern.result.name[I]>...>;
};

}  // namespace detail

/// Multiplies one or two tensors and sums over the letters that the result does not have:
/// einsum<"b i k, b j k -> b i j">(q, k). A letter is one dim wherever it stands, else [einsum-letter]. Of attention's
/// probabilities, [B, .., T, T], the keys are summed over and not the queries, else [axis-equal].
/// Sentences: [pattern-syntax], [pattern-rank], [pattern-names], [einsum-letter], [axis-equal].
/// PyTorch equivalent: torch.einsum; spelling and rules are einops.einsum's.
template <fixed_string P, AnyTensor... Xs>
auto einsum(const Xs&... x) {
  static_assert(sizeof...(Xs) == 1 || sizeof...(Xs) == 2, "an einsum has one or two operands");
  if constexpr (poisoned<Xs...>) {
    return Poison{};
  } else {
    using Solved = detail::SolvedEinsum<P, Xs...>;
    if constexpr (!fits<Solved>) {
      return Refusal<Solved>::poison();
    } else {
      using Result =
          detail::EinsumResult<Solved, std::make_integer_sequence<int, Solved::plan.pattern.result.groups>, Xs...>;
      const Pattern& p = Solved::plan.pattern;
      std::vector<std::vector<int>> letters;
      for (int o = 0; o < p.operands; ++o)
        letters.emplace_back(p.operand[o].name, p.operand[o].name + p.operand[o].names);
      letters.emplace_back(p.result.name, p.result.name + p.result.names);
      return TensorOf<typename Result::shape>(recorder().einsum({node_of(x)...}, std::move(letters)));
    }
  }
}

}  // namespace tessera
