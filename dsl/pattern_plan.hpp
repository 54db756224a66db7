// What each name of a rearrange, repeat or reduce pattern stands for, worked out at compile time, and the shape that
// results.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "dsl/binding.hpp"
#include "dsl/division.hpp"
#include "dsl/pattern.hpp"
#include "dsl/shape.hpp"

namespace tessera {

enum class PatternOp : std::uint8_t {
  rearrange,  ///< the same names on both sides
  repeat,     ///< the right side may have further names
  reduce,     ///< the left side may have further names and numbers, which are reduced away
};

/// A solved pattern. `problem` is the sentence for one that cannot be.
struct PatternPlan {
  /// Where a name's dim comes from.
  enum class Source : std::uint8_t {
    none,
    axis,      ///< the input axis `index`
    binding,   ///< the binding `index`
    quotient,  ///< the input axis `index` divided by the other names of its bracket
    number,    ///< the number that stands there
  };
  Pattern pattern{};
  Source source[Pattern::capacity]{};
  int index[Pattern::capacity]{};
  Text problem{};
};

namespace detail {

/// Solves a pattern for a shape. Rules, and the order in which they are checked, are einops' own
/// (einops.einops._prepare_transformation_recipe), but sizes are dims and not numbers.
class PatternSolver {
 public:
  constexpr PatternSolver(PatternOp op, std::string_view text, const Shape& x, const BoundName* bound, int bindings)
      : op_(op), x_(x), bound_(bound), bindings_(bindings) {
    plan_.pattern = parse_pattern_for(text, x.rank);
  }

  constexpr PatternPlan solve() {
    explain_pattern(plan_.problem, name(), plan_.pattern);
    if (good()) structure();
    if (good()) names();
    if (good()) bind();
    for (int g = 0; good() && g < left().groups; ++g) group(g);
    for (int i = 0; good() && i < right().names; ++i) known_on_the_right(i);
    return plan_;
  }

 private:
  using Source = PatternPlan::Source;

  constexpr const char* name() const {
    return op_ == PatternOp::rearrange ? "rearrange" : op_ == PatternOp::repeat ? "repeat" : "reduce";
  }
  constexpr bool good() const { return plan_.problem.size == 0; }
  constexpr const PatternSide& left() const { return plan_.pattern.operand[0]; }
  constexpr const PatternSide& right() const { return plan_.pattern.result; }
  constexpr std::string_view word(int n) const { return plan_.pattern.name[n]; }

  constexpr Text& say(int at) {
    put_pattern(plan_.problem, name(), plan_.pattern.text, at);
    return plan_.problem;
  }

  constexpr void structure() {
    if (plan_.pattern.operands != 1) {
      say(0).put("it takes one tensor, and the pattern has two [pattern-rank]");
    } else if (left().groups != x_.rank) {
      say(0).put("its left side has ").put(std::int64_t{left().groups}).put(" axes, and the tensor is ");
      x_.print(plan_.problem);
      plan_.problem.put(" [pattern-rank]");
    }
  }

  constexpr void names() {
    for (int i = 0; good() && op_ != PatternOp::reduce && i < left().names; ++i) {
      const int n = left().name[i];
      if (plan_.pattern.number[n]) {
        say(left().position[i]).put("a number other than 1; give the axis a name [pattern-names]");
      } else if (right().find(n) < 0) {
        say(left().position[i])
            .put(word(n))
            .put(" stands on the left only, and its axis would be lost [pattern-names]");
      }
    }
    if (op_ == PatternOp::repeat) return;
    for (int i = 0; good() && i < right().names; ++i) {
      const int n = right().name[i];
      if (plan_.pattern.number[n]) {
        say(right().position[i]).put("a number other than 1; give the axis a name [pattern-names]");
      } else if (left().find(n) < 0) {
        say(right().position[i])
            .put(word(n))
            .put(" stands on the right only; a new axis is made by repeat [pattern-names]");
      }
    }
  }

  constexpr void bind() {
    for (int b = 0; good() && b < bindings_; ++b) {
      const int n = plan_.pattern.find(bound_[b].name);
      if (n < 0) {
        say(0).put(bound_[b].name).put(" is given, and the pattern has no such name [pattern-binding]");
      } else if (plan_.source[n] != Source::none) {
        say(0).put(bound_[b].name).put(" is given twice [pattern-binding]");
      } else {
        plan_.source[n] = Source::binding;
        plan_.index[n] = b;
      }
    }
    for (int n = 0; n < plan_.pattern.names; ++n)
      if (plan_.pattern.number[n]) plan_.source[n] = Source::number;
  }

  /// (h k), as it was written
  constexpr void print_group(int g) {
    Text& t = plan_.problem;
    if (left().count[g] != 1) t.put("(");
    for (int i = 0; i < left().count[g]; ++i) t.put(i ? " " : "").put(word(left().name[left().first[g] + i]));
    if (left().count[g] != 1) t.put(")");
  }

  constexpr void group(int g) {
    const int first = left().first[g], count = left().count[g];
    const int at = count ? left().position[first] : 0;
    Dim known = Dim::constant(1);
    int unknown = -1;
    for (int i = first; i < first + count; ++i) {
      const int n = left().name[i];
      if (plan_.source[n] == Source::binding) {
        const Dim& bound = *bound_[plan_.index[n]].dim;
        known = count == 1 ? bound : known * bound;
      } else if (plan_.source[n] == Source::number) {
        known = known * Dim::constant(plan_.pattern.number[n]);
      } else if (unknown < 0) {
        unknown = n;
      } else {
        say(at)
            .put("the sizes of ")
            .put(word(unknown))
            .put(" and ")
            .put(word(n))
            .put(" are not given: give one of them with _is");
        plan_.problem.put(" [pattern-unknown]");
        return;
      }
    }
    if (unknown >= 0) {
      plan_.index[unknown] = g;
      plan_.source[unknown] = count == 1 ? Source::axis : Source::quotient;
      const Division division = divide(x_[g], known);
      if (count == 1) return;
      if (division.result == Division::Result::exact) {
        nested(g, division.quotient);
        return;
      }
      say(at);
      division.explain(plan_.problem, x_[g], known);
    } else if (known == x_[g] && !known.nests_as(x_[g])) {
      nested(g, known);
    } else if (!known.lines_up_with(x_[g])) {
      say(at);
      if (count) {
        print_group(g);
        plan_.problem.put(" is ");
        known.print(plan_.problem);
      } else {
        plan_.problem.put("1 stands for an axis of size 1");
      }
      plan_.problem.put(", and axis ").put(std::int64_t{g}).put(" of ");
      x_.print(plan_.problem);
      plan_.problem.put(" is ");
      x_[g].print(plan_.problem);
      plan_.problem.put(" [pattern-size]");
    }
  }

  /// Whether the names of bracket g stand in the order in which its axis is defined: D := H*K is (h k), not (k h).
  constexpr void nested(int g, const Dim& quotient) {
    const int first = left().first[g], count = left().count[g];
    int order[Pattern::capacity]{};
    for (int i = 0; i < count; ++i) order[i] = left().name[first + i];
    const Dim product = product_of(order, count, quotient);
    if (product.nests_as(x_[g])) return;
    say(left().position[first]);
    print_group(g);
    plan_.problem.put(" is ");
    product.print_factors(plan_.problem);
    plan_.problem.put(", and axis ").put(std::int64_t{g}).put(" of ");
    x_.print(plan_.problem);
    plan_.problem.put(" is ");
    x_[g].print_factors(plan_.problem);
    plan_.problem.put(", the same factors in another order");
    if (count < 6 && put_in_order(order, 0, count, g, quotient)) {
      plan_.problem.put(" (did you mean (");
      for (int i = 0; i < count; ++i) plan_.problem.put(i ? " " : "").put(word(order[i]));
      plan_.problem.put(")?)");
    }
    plan_.problem.put(" [pattern-size]");
  }

  constexpr Dim product_of(const int* names, int count, const Dim& quotient) const {
    Dim product = Dim::constant(1);
    for (int i = 0; i < count; ++i)
      product = product * (plan_.source[names[i]] == Source::binding  ? *bound_[plan_.index[names[i]]].dim
                           : plan_.source[names[i]] == Source::number ? Dim::constant(plan_.pattern.number[names[i]])
                                                                      : quotient);
    return product;
  }

  /// Puts the names from `at` on into the first order that nests as axis g; false if there is none.
  constexpr bool put_in_order(int* names, int at, int count, int g, const Dim& quotient) const {
    if (at == count) return product_of(names, count, quotient).nests_as(x_[g]);
    for (int i = at; i < count; ++i) {
      // The one that is taken comes first, the others keep their order.
      for (int k = i; k > at; --k) std::swap(names[k], names[k - 1]);
      if (put_in_order(names, at + 1, count, g, quotient)) return true;
      for (int k = at; k < i; ++k) std::swap(names[k], names[k + 1]);
    }
    return false;
  }

  constexpr void known_on_the_right(int i) {
    const int n = right().name[i];
    if (plan_.source[n] != Source::none) return;
    say(right().position[i])
        .put("the size of the new axis ")
        .put(word(n))
        .put(" is not given: give it with _is [pattern-unknown]");
  }

  PatternOp op_;
  const Shape& x_;
  const BoundName* bound_;
  int bindings_;
  PatternPlan plan_{};
};

}  // namespace detail

/// A pattern solved for an input of shape D with bindings Bs. As a function it is the Problem: the sentence, if any.
template <PatternOp Op, fixed_string P, class D, class... Bs>
struct SolvedPattern {
  static constexpr int bindings = sizeof...(Bs);
  static constexpr std::array<BoundName, sizeof...(Bs) + 1> bound{BoundName{Bs::name, &Bs::dim::value}..., BoundName{}};
  static constexpr PatternPlan plan = detail::PatternSolver(Op, P.view(), D::shape, bound.data(), bindings).solve();

  constexpr Text operator()() const { return plan.problem; }
};

namespace detail {

/// The product of expressions; no expression at all is 1.
template <class... Es>
struct ProductOf {
  using type = Constant<1>;
};
template <class E>
struct ProductOf<E> {
  using type = E;
};
template <class A, class B, class... Es>
struct ProductOf<A, B, Es...> {
  using type = typename ProductOf<Product<A, B>, Es...>::type;
};

/// The expression that name K of a solved pattern stands for.
template <class Solved, class D, class Bindings, int K>
struct NameDim;

template <PatternOp Op, fixed_string P, class D, class... Bs, int K>
struct NameDim<SolvedPattern<Op, P, D, Bs...>, D, Dims<typename Bs::dim...>, K> {
  using Solved = SolvedPattern<Op, P, D, Bs...>;
  using Bound = Dims<typename Bs::dim...>;

  /// The other names of K's bracket are numbers or bound by hand.
  template <int First, int... I>
  static constexpr auto others(std::integer_sequence<int, I...>) {
    return typename ProductOf<decltype(other<First + I>())...>::type{};
  }
  template <int At>
  static constexpr auto other() {
    constexpr int n = Solved::plan.pattern.operand[0].name[At];
    if constexpr (n == K)
      return Constant<1>{};
    else if constexpr (Solved::plan.source[n] == PatternPlan::Source::number)
      return Constant<Solved::plan.pattern.number[n]>{};
    else
      return typename Bound::template at<Solved::plan.index[n]>{};
  }

  static constexpr auto expression() {
    constexpr auto& plan = Solved::plan;
    constexpr auto source = plan.source[K];
    if constexpr (source == PatternPlan::Source::axis) {
      return typename D::template at<plan.index[K]>{};
    } else if constexpr (source == PatternPlan::Source::binding) {
      return typename Bound::template at<plan.index[K]>{};
    } else if constexpr (source == PatternPlan::Source::number) {
      return Constant<plan.pattern.number[K]>{};
    } else {
      constexpr auto& left = plan.pattern.operand[0];
      constexpr int g = plan.index[K];
      using Others = decltype(others<left.first[g]>(std::make_integer_sequence<int, left.count[g]>{}));
      return Quotient<typename D::template at<g>, Others>{};
    }
  }
};

template <class Solved>
struct PatternResult;

template <PatternOp Op, fixed_string P, class D, class... Bs>
struct PatternResult<SolvedPattern<Op, P, D, Bs...>> {
  using Solved = SolvedPattern<Op, P, D, Bs...>;
  static constexpr auto& pattern = Solved::plan.pattern;

  template <int K>
  using name = decltype(NameDim<Solved, D, Dims<typename Bs::dim...>, K>::expression());

  template <int G, class Indices>
  struct Group;
  template <int G, int... I>
  struct Group<G, std::integer_sequence<int, I...>> {
    using type = typename ProductOf<name<pattern.result.name[pattern.result.first[G] + I]>...>::type;
  };
  template <int G>
  using group = typename Group<G, std::make_integer_sequence<int, pattern.result.count[G]>>::type;

  template <int... G>
  static Dims<group<G>...> all_groups(std::integer_sequence<int, G...>);
  template <int... K>
  static Dims<name<K>...> all_names(std::integer_sequence<int, K...>);

  /// The shape that results, and the dim of every name.
  using shape = decltype(all_groups(std::make_integer_sequence<int, pattern.result.groups>{}));
  using names = decltype(all_names(std::make_integer_sequence<int, pattern.names>{}));
};

}  // namespace detail

}  // namespace tessera
