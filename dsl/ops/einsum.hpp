// einsum: products of tensors, summed over the letters that the result does not have.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "dsl/axis_ref.hpp"
#include "dsl/division.hpp"
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

/// Whether the result has a letter.
constexpr bool keeps(const Pattern& p, int letter) {
  for (int i = 0; i < p.result.names; ++i)
    if (p.result.name[i] == letter) return true;
  return false;
}

/// Adds the sentence for a sum over the first of two equal axes of what every image has its own of, where the second is
/// kept: probabilities [B, H, T, T] that are summed over their queries. A weight [D, D], which has no batch, may be
/// read either way.
constexpr void explain_sum_over_queries(EinsumPlan& plan, std::string_view text, const Shape* x, int operands) {
  const Pattern& p = plan.pattern;
  for (int o = 0; operands == 2 && o < operands; ++o) {
    const PatternSide& side = p.operand[o];
    if (x[o].rank < 3 || x[o][0].known()) continue;
    for (int queries = 1; queries < x[o].rank; ++queries)
      for (int keys = queries + 1; keys < x[o].rank; ++keys) {
        if (!equal_named_axes(x[o], queries, keys)) continue;
        if (keeps(p, side.name[queries]) || !keeps(p, side.name[keys])) continue;
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
}

/// Adds " (did you mean rearrange<b n (h k) -> b h n k> of it?)" where operand `o` has other axes than letters, and
/// its letters' dims, which the other operand has but for new axes, are those split or merged.
constexpr void suggest_split(Text& t, const Pattern& p, const Shape* x, int o) {
  const PatternSide &side = p.operand[o], &other = p.operand[1 - o];
  if (side.names > Shape::capacity || other.groups != x[1 - o].rank || other.names != other.groups) return;
  const Dim* dims[Shape::capacity]{};
  for (int i = 0; i < side.names; ++i)
    for (int k = 0; k < other.names; ++k)
      if (other.name[k] == side.name[i]) dims[i] = &x[1 - o][k];
  // What neither is one of these nor made of two is a letter of its own.
  int next = 0;
  for (int a = 0; a < x[o].rank; ++a) {
    bool made = false;
    for (int i = 0; i < side.names; ++i) {
      made |= dims[i] && x[o][a] == *dims[i];
      for (int k = 0; k < i; ++k) made |= dims[i] && dims[k] && x[o][a] == *dims[i] * *dims[k];
    }
    if (made) continue;
    while (next < side.names && dims[next]) ++next;
    if (next == side.names) return;
    dims[next++] = &x[o][a];
  }
  Shape needed;
  for (int i = 0; i < side.names; ++i) {
    if (!dims[i]) return;
    needed.dim[needed.rank++] = dims[i];
  }
  if (suggest_rearrange(t, " (", x[o], needed)) t.put(")");
}

/// Adds " (3 queries a key: did you mean repeat<b g j k -> b (g 3) j k> of it?)" where a letter that is kept is so many
/// times as long elsewhere: heads of queries that share a head of keys. Else nothing, and the answer is false.
constexpr bool suggest_shared_heads(Text& t, const Pattern& p, const Shape& x, int o, int axis, const Dim& needed) {
  const AxisNames names(x);
  const Division times = divide(needed, x[axis]);
  if (times.result != Division::Result::exact || !times.quotient.normal.is_constant() || !names.clear() ||
      x[axis].shown.is_constant() || !keeps(p, p.operand[o].name[axis]))
    return false;
  const std::int64_t count = times.quotient.value();
  t.put(" (").put(count).put(" times as many: did you mean repeat<");
  put_side(t, names, x.rank);
  t.put(" -> ");
  for (int i = 0; i < x.rank; ++i) {
    t.put(i ? " " : "");
    if (i != axis)
      t.put(names.name(i));
    else if (needed.number_at() == 1)
      t.put("(").put(count).put(" ").put(names.name(i)).put(")");
    else
      t.put("(").put(names.name(i)).put(" ").put(count).put(")");
  }
  t.put("> of it?)");
  return true;
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
      if (operands == 2) suggest_split(t, p, x, o);
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
      } else if (!suggest_shared_heads(t, p, x[o], o, i, first)) {
        Text idea;
        suggest(idea, second, first, i, i == x[o].rank - 1 ? "a " : "");
        if (says_what_was_meant(idea)) {
          t.put(idea.view());
        } else {
          Shape needed = x[o];
          needed.dim[i] = &first;
          t.put(" (did you mean ");
          needed.print(t);
          t.put("?)");
        }
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
