// Sizes given to names of a pattern by hand: "h"_is(H).
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include "dsl/dim.hpp"
#include "dsl/text.hpp"

namespace tessera {

/// A pattern's name and the dim it stands for.
template <fixed_string Name, class E>
struct Binding {
  static constexpr std::string_view name = Name.view();
  using dim = E;
};

/// The name of a pattern, to be called with its dim.
template <fixed_string Name>
struct BindingOf {
  template <DimExpression E>
  constexpr auto operator()(E) const {
    return Binding<Name, E>{};
  }
  /// "h"_is(4) has a value only when the program runs, so it is the sentence [dim-number]; "h"_is(4_c) is meant.
  template <std::integral I>
  constexpr auto operator()(I) const {
    constexpr auto problem = [] {
      Text t;
      t.put("the name ")
          .put(Name.view())
          .put(" of a pattern is given a plain number: a number is written with _c, as in 4_c");
      t.put(" [dim-number]");
      return t;
    };
    Refusal<decltype(problem)>::poison();
    return Binding<Name, PoisonDim>{};
  }
};

/// A binding as a value.
struct BoundName {
  std::string_view name;
  const Dim* dim = nullptr;
};

namespace literals {

/// rearrange<"b n (h k) -> b h n k">(x, "h"_is(H))
template <fixed_string Name>
constexpr BindingOf<Name> operator""_is() {
  return {};
}

}  // namespace literals

}  // namespace tessera
