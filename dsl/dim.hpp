// Dims as expressions: each is an empty type that holds its Dim, so that N + 1_c can be a template argument.
#pragma once

#include <cstdint>
#include <type_traits>

#include "dsl/diagnostic.hpp"
#include "dsl/division.hpp"
#include "dsl/polynomial.hpp"

namespace tessera {

/// Base of everything that can stand in a shape.
struct Expression {};

template <class E>
concept DimExpression = std::is_base_of_v<Expression, std::remove_cvref_t<E>>;

/// What a refused expression becomes. A shape that holds it is poisoned.
struct PoisonDim : Expression {
  static constexpr bool poisoned = true;
  static constexpr Dim value{};
};

/// A number: 3_c.
template <std::int64_t Value>
struct Constant : Expression {
  static constexpr bool poisoned = false;
  static constexpr Dim value = Dim::constant(Value);
};

template <class A, class B>
struct Sum : Expression {
  static constexpr bool poisoned = A::poisoned || B::poisoned;
  static constexpr Dim value = A::value + B::value;
};

template <class A, class B>
struct Difference : Expression {
  static constexpr bool poisoned = A::poisoned || B::poisoned;
  static constexpr Dim value = A::value - B::value;
};

template <class A, class B>
struct Product : Expression {
  static constexpr bool poisoned = A::poisoned || B::poisoned;
  static constexpr Dim value = A::value * B::value;
};

/// A / B where it is exact; shown as what it is equal to: (H*K) / H prints K.
template <class A, class B>
struct Quotient : Expression {
  static constexpr bool poisoned = A::poisoned || B::poisoned;
  static constexpr Dim value = divide(A::value, B::value).quotient;
};

namespace detail {

/// R itself, or the sentence for an expression with more terms or factors than a Polynomial holds, or a number that 64
/// bits do not hold.
template <class R>
constexpr auto bounded() {
  constexpr auto problem = [] {
    Text t;
    if (R::poisoned) return t;
    if (!R::value.normal.fits_64_bits())
      t.put(
          "a dim is at most 9223372036854775807, the largest number of 64 bits, and this expression is larger "
          "[dim-too-large]");
    else if (R::value.normal.overflow)
      t.put(
          "a dim has at most 6 terms of 6 factors each, and this expression has more: define an axis for a part of it "
          "[dim-too-long]");
    return t;
  };
  if constexpr (fits<decltype(problem)>) {
    return R{};
  } else {
    Refusal<decltype(problem)>::poison();
    return PoisonDim{};
  }
}

}  // namespace detail

/// A + B; equality with other dims is decided on the normal form, so N + 1_c is 1_c + N.
template <DimExpression A, DimExpression B>
constexpr auto operator+(A, B) {
  return detail::bounded<Sum<A, B>>();
}

template <DimExpression A, DimExpression B>
constexpr auto operator-(A, B) {
  return detail::bounded<Difference<A, B>>();
}

template <DimExpression A, DimExpression B>
constexpr auto operator*(A, B) {
  return detail::bounded<Product<A, B>>();
}

/// A / B, which must be exact: as polynomials, or as numbers where A is a number. Otherwise a sentence that names the
/// nearest values that would work [dim-division].
template <DimExpression A, DimExpression B>
constexpr auto operator/(A, B) {
  constexpr auto problem = [] {
    Text t;
    if (!A::poisoned && !B::poisoned) divide(A::value, B::value).explain(t, A::value, B::value);
    return t;
  };
  if constexpr (!fits<decltype(problem)>) {
    Refusal<decltype(problem)>::poison();
    return PoisonDim{};
  } else if constexpr (Quotient<A, B>::poisoned) {
    return PoisonDim{};
  } else {
    return Quotient<A, B>{};
  }
}

namespace detail {

/// The sentence for a dim and a plain number.
template <class A>
constexpr PoisonDim plain_number() {
  constexpr auto problem = [] {
    Text t;
    if (A::poisoned) return t;
    t.put("a dim and a plain number: in a shape a number is written with _c, as in ");
    A::value.shown.print(t);
    t.put(" + 1_c [dim-number]");
    return t;
  };
  if constexpr (!fits<decltype(problem)>) Refusal<decltype(problem)>::poison();
  return {};
}

}  // namespace detail

namespace detail {

/// The dim that a template argument stands for: Linear<D, M>; a plain number, as in Linear<D, 1000>, is [dim-number].
template <auto D, class E = std::remove_cv_t<decltype(D)>>
struct DimOf {
  using type = E;
};
template <auto Number, class I>
  requires(!DimExpression<I>)
struct DimOf<Number, I> {
  static constexpr auto problem = [] {
    Text t;
    const std::int64_t number = Number;
    t.put("a plain number, ").put(number).put(", where a dim belongs: a number is written with _c, as in ");
    t.put(number).put("_c [dim-number]");
    return t;
  };
  static_assert((static_cast<void>(Refusal<decltype(problem)>::poison()), true));
  using type = PoisonDim;
};
template <auto D>
using dim_of = typename DimOf<D>::type;

}  // namespace detail

/// N + 1 has a value only when the program runs, so it is the sentence [dim-number]; N + 1_c is meant. The same for -,
/// *, /.
template <DimExpression A>
constexpr PoisonDim operator+(A, std::int64_t) {
  return detail::plain_number<A>();
}
template <DimExpression A>
constexpr PoisonDim operator-(A, std::int64_t) {
  return detail::plain_number<A>();
}
template <DimExpression A>
constexpr PoisonDim operator*(A, std::int64_t) {
  return detail::plain_number<A>();
}
template <DimExpression A>
constexpr PoisonDim operator/(A, std::int64_t) {
  return detail::plain_number<A>();
}
template <DimExpression A>
constexpr PoisonDim operator+(std::int64_t, A) {
  return detail::plain_number<A>();
}
template <DimExpression A>
constexpr PoisonDim operator-(std::int64_t, A) {
  return detail::plain_number<A>();
}
template <DimExpression A>
constexpr PoisonDim operator*(std::int64_t, A) {
  return detail::plain_number<A>();
}
template <DimExpression A>
constexpr PoisonDim operator/(std::int64_t, A) {
  return detail::plain_number<A>();
}

namespace literals {

/// 16_c: a number as a dim, in decimal digits. Sentences: [dim-number], [dim-too-large].
template <char... Digits>
constexpr auto operator""_c() {
  constexpr auto problem = [] {
    Text t;
    std::int64_t v = 0;
    bool decimal = true, fits = true;
    for (const char c : {Digits...}) {
      if (c == '\'') continue;
      decimal = decimal && c >= '0' && c <= '9';
      fits = fits && !__builtin_mul_overflow(v, std::int64_t{10}, &v) && !__builtin_add_overflow(v, c - '0', &v);
    }
    const char text[] = {Digits..., '\0'};
    if (!decimal)
      t.put(text).put("_c: a number as a dim is written in decimal digits, as 16_c [dim-number]");
    else if (!fits)
      t.put(text).put("_c: a dim is at most 9223372036854775807, the largest number of 64 bits [dim-too-large]");
    return t;
  };
  if constexpr (!fits<decltype(problem)>) {
    Refusal<decltype(problem)>::poison();
    return PoisonDim{};
  } else {
    constexpr std::int64_t value = [] {
      std::int64_t v = 0;
      ((v = Digits == '\'' ? v : v * 10 + (Digits - '0')), ...);
      return v;
    }();
    return Constant<value>{};
  }
}

}  // namespace literals

using namespace literals;

/// How many: a plain integer or a dim of known size, where a count is asked for (Stack<Block, 2>, List<M, H>).
template <auto Count>
constexpr int count_of() {
  using C = std::remove_cv_t<decltype(Count)>;
  if constexpr (DimExpression<C>) {
    constexpr auto problem = [] {
      Text t;
      if (!C::poisoned && (!C::value.known() || C::value.value() < 1)) {
        t.put("a count has to be known and positive when the program is compiled, and ");
        C::value.print(t);
        t.put(C::value.known() ? " is not positive [count]" : " is known only when it runs [count]");
      }
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      Refusal<decltype(problem)>::poison();
      return 1;
    } else {
      return C::poisoned ? 1 : static_cast<int>(C::value.value());
    }
  } else {
    constexpr auto problem = [] {
      Text t;
      if (Count < 1) t.put("a count has to be positive, and this is ").put(std::int64_t{Count}).put(" [count]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      Refusal<decltype(problem)>::poison();
      return 1;
    } else {
      return static_cast<int>(Count);
    }
  }
}

}  // namespace tessera
