// Axes: the named dims that shapes are written with.
#pragma once

#include <cstdint>

#include "dsl/dim.hpp"
#include "dsl/text.hpp"

namespace tessera {

/// The extent of an axis that is known only when the program runs.
struct Unsized {};

/// A named axis. Axes are nominal: two of the same size and different names do not match.
///   axis<"B">           known when the program runs; equal to itself only
///   axis<"P", 4>        a primitive axis of size 4
///   axis<"D", H * K>    defined: prints D and equals H*K
///   axis<"K", 8_c / H>  the definition is a number, so K is a primitive axis of that size
///   axis<"J", T>        an alias: T under another name, to tell two axes of one tensor apart (attention scores)
///   axis<"T", CLS + N>  a sum, whose named parts are found by part<N>(x) and take<CLS>(x)
template <fixed_string Name, auto Extent = Unsized{}>
struct Axis : Expression {
 private:
  using E = std::remove_cv_t<decltype(Extent)>;

  static constexpr bool is_poisoned() {
    if constexpr (DimExpression<E>)
      return E::poisoned;
    else
      return false;
  }
  static constexpr Dim make() {
    if constexpr (std::is_same_v<E, Unsized>)
      return Dim::axis(Name.view());
    else if constexpr (!DimExpression<E>)
      return Dim::axis(Name.view(), Extent);
    else if constexpr (E::value.normal.is_constant())
      return Dim::axis(Name.view(), E::value.value());
    else
      return Dim::defined(Name.view(), E::value);
  }

 public:
  static constexpr bool poisoned = is_poisoned();
  static constexpr Dim value = make();
};

namespace detail {

/// What is wrong with the spelling of an axis, whose name reaches sentences, emitted identifiers, comments and texts.
template <fixed_string Name>
struct SpellingProblem {
  constexpr Text operator()() const {
    Text t;
    if (!is_identifier(Name.view()))
      t.put("axis ")
          .put(Name.view())
          .put(" is not spelled as a name: letters, digits and underscores, a letter first, of ")
          .put("at most 63 [axis-spelling]");
    return t;
  }
};

template <fixed_string Name>
constexpr auto make_axis() {
  using A = Axis<Name>;  // Clang prints A, where the whole type would be a line
  if constexpr (fits<SpellingProblem<Name>>) {
    return A{};
  } else {
    Refusal<SpellingProblem<Name>>::poison();
    return PoisonDim{};
  }
}

template <fixed_string Name, auto Extent>
constexpr auto make_axis() {
  using A = Axis<Name, Extent>;
  constexpr auto problem = [] {
    Text t;
    std::int64_t size = 1;
    if constexpr (!DimExpression<decltype(Extent)>)
      size = Extent;
    else if constexpr (!A::poisoned)
      size = Extent.value.known() ? Extent.value.value() : 1;
    if (size < 1)
      t.put("axis ").put(Name.view()).put(" has size ").put(size).put("; it has to be at least 1 [axis-size]");
    return t;
  };
  if constexpr (!fits<SpellingProblem<Name>>) {
    Refusal<SpellingProblem<Name>>::poison();
    return PoisonDim{};
  } else if constexpr (!A::poisoned && fits<decltype(problem)> && DimExpression<decltype(Extent)>) {
    // A definition that is a number leaves no trace in the type, which keeps the compiler's notes short.
    if constexpr (Extent.value.normal.is_constant())
      return Axis<Name, A::value.value()>{};
    else
      return A{};
  } else if constexpr (fits<decltype(problem)>) {
    return A{};
  } else {
    Refusal<decltype(problem)>::poison();
    return PoisonDim{};
  }
}

}  // namespace detail

/// An axis as a value: inline constexpr auto D = axis<"D", H * K>. Sentences: [axis-size], [axis-spelling].
template <fixed_string Name, auto... Extent>
inline constexpr auto axis = detail::make_axis<Name, Extent...>();

}  // namespace tessera
