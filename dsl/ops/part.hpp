// part: one part of an axis that is a sum, by its name.
#pragma once

#include <cstdint>
#include <type_traits>

#include "dsl/axis_ref.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// Where a part lies in a shape.
struct FoundPart {
  int axis = -1;
  Dim before{};     ///< the extent of the parts that stand before it
  int second = -1;  ///< a second axis that has it
};

/// Whether `wanted` is some of the parts of `whole`, but not all; `before` is then the sum of those before it.
constexpr bool find_part(const Dim& whole, const Dim& wanted, Dim& before) {
  const auto sum = [&](int begin, int end) {
    Dim run;
    for (int i = begin; i < end; ++i) {
      Polynomial term;
      term.add(whole.part(i));
      run = i == begin ? Dim{term, term} : run + Dim{term, term};
    }
    return run;
  };
  for (int begin = 0; begin < whole.parts(); ++begin)
    for (int end = begin + 1; end <= whole.parts(); ++end) {
      if (end - begin == whole.parts() || !sum(begin, end).lines_up_with(wanted)) continue;
      before = sum(0, begin);
      return true;
    }
  return false;
}

/// `only`: the one axis to look at; -1 for all.
constexpr FoundPart find_part(const Shape& x, const Dim& wanted, int only) {
  FoundPart found;
  Dim before;
  for (int i = 0; i < x.rank && found.second < 0; ++i) {
    if ((only >= 0 && i != only) || !find_part(x[i], wanted, before)) continue;
    (found.axis < 0 ? found.axis : found.second) = i;
    if (found.second < 0) found.before = before;
  }
  return found;
}

constexpr void explain_part(Text& t, const char* op, const Shape& x, const Dim& wanted, const FoundPart& found,
                            bool one_position) {
  const bool fits = found.axis >= 0 && found.second < 0 && found.before.known();
  if (fits && (!one_position || (wanted.known() && wanted.value() == 1))) return;
  t.put(op).put("<");
  wanted.shown.print(t);
  t.put("> of ");
  x.print(t);
  t.put(": ");
  if (found.axis < 0) {
    t.put("no axis is a sum with the part ");
    wanted.print(t);
    const int so_far = t.size;
    for (int i = 0; i < x.rank; ++i) {
      if (x[i] == wanted) {
        t.put("; axis ").put(std::int64_t{i}).put(" is all of it");
      } else if (x[i].normal.terms > 1 && x[i].parts() == 0) {
        t.put("; axis ").put(std::int64_t{i}).put(" is ");
        x[i].print(t);
        t.put(", whose parts have no order, because not all of them have names (did you mean axis<CLS, 1> for the 1?)");
      }
    }
    if (t.size == so_far) t.put(" (was it left out of a concat?)");
    t.put(" [part-axis]");
  } else if (found.second >= 0) {
    t.put("axes ").put(std::int64_t{found.axis}).put(" and ").put(std::int64_t{found.second});
    t.put(" both have the part ");
    wanted.print(t);
    t.put("; say which one: ").put(op).put("<");
    wanted.shown.print(t);
    t.put(", ").put(std::int64_t{found.axis}).put("> [part-axis]");
  } else if (!found.before.known()) {
    t.put("it begins at ");
    found.before.print(t);
    t.put(", which is known only when the program runs [dim-unknown]");
  } else {
    wanted.print(t);
    t.put(" is not one position, and its axis cannot go away (did you mean part<");
    wanted.shown.print(t);
    t.put(">?) [part-size]");
  }
}

/// The op that looks for a part, and whether the part has to be one position.
struct PartOp {
  static constexpr const char* name = "part";
  static constexpr bool one_position = false;
};
struct TakeOp {
  static constexpr const char* name = "take";
  static constexpr bool one_position = true;
};

/// The Problem of a part, and where it is. `axis` is none or one.
template <class Op, class Part, class X, AxisRef... axis>
struct SolvedPart {
  static_assert(sizeof...(axis) <= 1, "a part is of one axis");
  static constexpr bool poisoned = Part::poisoned || tessera::poisoned<X> || (axis.poisoned || ...);

  static constexpr FoundPart find() {
    int only = -1;
    if constexpr (!poisoned) ((only = axis_index(axis, X::shape)), ...);
    if constexpr (poisoned)
      return {};
    else
      return find_part(X::shape, Part::value, only);
  }
  static constexpr FoundPart found = find();

  constexpr Text operator()() const {
    Text t;
    if constexpr (!poisoned) {
      (explain_axis(t, Op::name, axis, X::shape), ...);
      if (!t.size) explain_part(t, Op::name, X::shape, Part::value, found, Op::one_position);
    }
    return t;
  }
};

}  // namespace detail

/// The part of a sum axis: part<N>(x) of [B, T, D] is [B, N, D], where T = axis<"T", CLS + N> and CLS = axis<"CLS", 1>.
/// A sum knows where its parts lie when all of them have names, for then CLS + N and N + CLS are told apart (a number
/// among them, as in N + 1_c, leaves the order open: both N + 1_c and 1_c + N are written for one shape). A part may be
/// a sum itself. Where several axes have it, the axis is given as well: part<N, J>(scores).
/// Sentences: [part-axis], [axis-index], [axis-name], [dim-unknown].
/// PyTorch equivalent: x[:, 1:], with the positions counted by hand.
template <DimExpression auto Part, AxisRef... axis, AnyTensor X>
auto part(const X& x) {
  using P = std::remove_cv_t<decltype(Part)>;
  using Solved = detail::SolvedPart<detail::PartOp, P, X, axis...>;
  if constexpr (Solved::poisoned) {
    return Poison{};
  } else if constexpr (!fits<Solved>) {
    return Refusal<Solved>::poison();
  } else {
    constexpr int at = Solved::found.axis;
    return TensorOf<replace_axis<typename X::dims, at, P>>(
        recorder().slice(node_of(x), at, Solved::found.before.value(), P::value));
  }
}

}  // namespace tessera
