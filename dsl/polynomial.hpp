// The normal form of dims: integer polynomials over named symbols, sorted, so that equality is comparison.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "dsl/text.hpp"

namespace tessera {

/// One axis as the algebra sees it. Two symbols are the same when name and extent agree.
struct Symbol {
  std::string_view name;
  std::int64_t extent = 0;  ///< 0: known only when the program runs

  constexpr bool operator==(const Symbol&) const = default;
  constexpr bool operator<(const Symbol& other) const {
    return name != other.name ? name < other.name : extent < other.extent;
  }
};

/// coefficient * factor[0] * factor[1] * ..., factors sorted.
struct Term {
  static constexpr int capacity = 6;
  std::int64_t coefficient = 0;
  int factors = 0;
  Symbol factor[capacity]{};

  constexpr bool same_factors(const Term& other) const {
    if (factors != other.factors) return false;
    for (int i = 0; i < factors; ++i)
      if (!(factor[i] == other.factor[i])) return false;
    return true;
  }
  /// Becomes its quotient by `by`; answers false, half done, where that does not divide it.
  constexpr bool divide(const Term& by) {
    if (coefficient % by.coefficient) return false;
    coefficient /= by.coefficient;
    for (int f = 0; f < by.factors; ++f) {
      int at = 0;
      while (at < factors && !(factor[at] == by.factor[f])) ++at;
      if (at == factors) return false;
      for (; at + 1 < factors; ++at) factor[at] = factor[at + 1];
      factor[--factors] = Symbol{};
    }
    return true;
  }
  /// Terms of higher degree come first, then by name: N+1, not 1+N.
  constexpr bool before(const Term& other) const {
    if (factors != other.factors) return factors > other.factors;
    for (int i = 0; i < factors; ++i)
      if (!(factor[i] == other.factor[i])) return factor[i] < other.factor[i];
    return false;
  }
};

/// A sum of terms in normal form: no zero terms, no two with the same factors, sorted.
struct Polynomial {
  static constexpr int capacity = 6;
  int terms = 0;
  Term term[capacity]{};
  bool overflow = false;  ///< a sum or product had more terms or factors than fit; equal to nothing
  bool large = false;     ///< and that is because a number of it does not fit into 64 bits

  static constexpr Polynomial constant(std::int64_t value) {
    Polynomial p;
    if (value) p.term[p.terms++].coefficient = value;
    return p;
  }
  static constexpr Polynomial symbol(Symbol s) {
    Polynomial p;
    p.terms = 1;
    p.term[0].coefficient = 1;
    p.term[0].factors = 1;
    p.term[0].factor[0] = s;
    return p;
  }

  constexpr bool operator==(const Polynomial& other) const {
    if (overflow || other.overflow || terms != other.terms) return false;
    for (int i = 0; i < terms; ++i)
      if (term[i].coefficient != other.term[i].coefficient || !term[i].same_factors(other.term[i])) return false;
    return true;
  }

  constexpr void add(const Term& t) {
    if (t.coefficient == 0) return;
    for (int i = 0; i < terms; ++i) {
      if (!term[i].same_factors(t)) continue;
      if (__builtin_add_overflow(term[i].coefficient, t.coefficient, &term[i].coefficient)) overflow = large = true;
      if (term[i].coefficient == 0) {
        for (int k = i; k + 1 < terms; ++k) term[k] = term[k + 1];
        --terms;
      }
      return;
    }
    if (terms == capacity) {
      overflow = true;
      return;
    }
    int at = terms++;
    for (; at > 0 && t.before(term[at - 1]); --at) term[at] = term[at - 1];
    term[at] = t;
  }

  friend constexpr Polynomial operator+(Polynomial a, const Polynomial& b) {
    a.overflow |= b.overflow;
    a.large |= b.large;
    for (int i = 0; i < b.terms; ++i) a.add(b.term[i]);
    return a;
  }
  friend constexpr Polynomial operator-(Polynomial a, const Polynomial& b) { return a + b * constant(-1); }
  friend constexpr Polynomial operator*(const Polynomial& a, const Polynomial& b) {
    Polynomial product;
    product.overflow = a.overflow || b.overflow;
    product.large = a.large || b.large;
    for (int i = 0; i < a.terms; ++i)
      for (int k = 0; k < b.terms; ++k) {
        Term t = a.term[i];
        if (__builtin_mul_overflow(t.coefficient, b.term[k].coefficient, &t.coefficient))
          product.overflow = product.large = true;
        for (int f = 0; f < b.term[k].factors; ++f) {
          if (t.factors == Term::capacity) {
            product.overflow = true;
            return product;
          }
          int at = t.factors++;
          for (; at > 0 && b.term[k].factor[f] < t.factor[at - 1]; --at) t.factor[at] = t.factor[at - 1];
          t.factor[at] = b.term[k].factor[f];
        }
        product.add(t);
      }
    return product;
  }

  /// Sets quotient to a / b and answers true when b divides a exactly as polynomials. The order of terms is a monomial
  /// order, so that dividing the first term by the first, over and over, finds the quotient if there is one.
  static constexpr bool divide(Polynomial a, const Polynomial& b, Polynomial& quotient) {
    quotient = Polynomial{};
    if (b.terms == 0 || b.overflow) return false;
    while (a.terms && !a.overflow) {
      Polynomial first;
      first.terms = 1;
      first.term[0] = a.term[0];
      if (!first.term[0].divide(b.term[0])) return false;
      quotient.add(first.term[0]);
      a = a - b * first;
    }
    return !a.overflow && !quotient.overflow;
  }

  /// Whether every symbol has an extent.
  constexpr bool known() const {
    for (int i = 0; i < terms; ++i)
      for (int k = 0; k < term[i].factors; ++k)
        if (!term[i].factor[k].extent) return false;
    return true;
  }
  constexpr bool is_constant() const { return terms == 0 || (terms == 1 && term[0].factors == 0); }

  /// Sets `sum` to the value with every unsized symbol replaced by `unsized`; answers false, and sets it to the largest
  /// number, where 64 bits do not hold the value.
  constexpr bool evaluate(std::int64_t unsized, std::int64_t& sum) const {
    sum = 0;
    bool fits = !large;
    for (int i = 0; i < terms; ++i) {
      std::int64_t product = term[i].coefficient;
      for (int k = 0; k < term[i].factors; ++k)
        fits &=
            !__builtin_mul_overflow(product, term[i].factor[k].extent ? term[i].factor[k].extent : unsized, &product);
      fits &= !__builtin_add_overflow(sum, product, &sum);
    }
    if (!fits) sum = std::numeric_limits<std::int64_t>::max();
    return fits;
  }
  /// The value with every unsized symbol replaced by `unsized`; the largest number where 64 bits do not hold it.
  constexpr std::int64_t value(std::int64_t unsized = 0) const {
    std::int64_t sum = 0;
    evaluate(unsized, sum);
    return sum;
  }
  /// Whether 64 bits hold its numbers, and the value of one image.
  constexpr bool fits_64_bits() const {
    std::int64_t sum = 0;
    return evaluate(1, sum);
  }

  constexpr void print(Text& out) const {
    if (overflow)
      out.put(large ? "too-large-dim" : "too-long-dim");
    else if (terms == 0)
      out.put("0");
    for (int i = 0; i < terms; ++i) {
      std::int64_t c = term[i].coefficient;
      if (i && c > 0) out.put("+");
      if (term[i].factors == 0)
        out.put(c);
      else if (c == -1)
        out.put("-");
      else if (c != 1)
        out.put(c).put("*");
      for (int k = 0; k < term[i].factors; ++k) out.put(k ? "*" : "").put(term[i].factor[k].name);
    }
  }
};

/// The order in which a sum's parts were written, as numbers of terms of its normal form. No parts: no order.
struct PartOrder {
  int parts = 0;
  std::int8_t term[Polynomial::capacity]{};

  constexpr bool operator==(const PartOrder&) const = default;
};

/// The order in which a product's factors were written, the outermost first, as numbers of factors of its one term.
struct FactorOrder {
  int factors = 0;
  std::int8_t factor[Term::capacity]{};
  std::int8_t number = 0;  ///< before which factor the coefficient stands, from 1; 0: it is 1

  constexpr bool operator==(const FactorOrder&) const = default;
};

/// The extent of one dimension: as it was written (what people read) and in normal form (what decides).
/// A defined axis D := H*K is shown as D and is H*K in normal form.
///
/// A sum whose parts all have names remembers their order, which says where each part lies: CLS + N. It does not
/// matter to equality. A sum with a number in it, as N + 1, has no order. The same holds for products: H * K says that
/// the heads are the outer axis, 3 * H * K that three of these lie one after the other. With numbers at two places, as
/// in 2 * H * 2, there is no order.
struct Dim {
  Polynomial shown, normal;
  PartOrder order{};      ///< of two parts or more
  FactorOrder nesting{};  ///< of two factors or more, one of which may be a number

  static constexpr Dim constant(std::int64_t value) {
    return {Polynomial::constant(value), Polynomial::constant(value)};
  }
  static constexpr Dim axis(std::string_view name, std::int64_t extent = 0) {
    return {Polynomial::symbol({name, extent}), Polynomial::symbol({name, extent})};
  }
  /// name := definition; shown by its name, equal to its definition.
  static constexpr Dim defined(std::string_view name, const Dim& definition) {
    std::int64_t extent = definition.normal.known() ? definition.normal.value() : 0;
    return {Polynomial::symbol({name, extent}), definition.normal, definition.order, definition.nesting};
  }

  /// How many parts it has, in a known order; 0 where there is none.
  constexpr int parts() const {
    if (order.parts) return order.parts;
    return normal.terms == 1 && normal.term[0].factors > 0 && !normal.overflow ? 1 : 0;
  }
  constexpr const Term& part(int i) const { return normal.term[order.term[i]]; }

  /// How many axes it is the product of, in a known order; -1 where there is none.
  constexpr int factors() const {
    if (nesting.factors) return nesting.factors;
    const bool plain = normal.terms == 1 && normal.term[0].factors <= (normal.term[0].coefficient == 1 ? 1 : 0);
    return plain && !normal.overflow ? normal.term[0].factors : -1;
  }
  /// Before which of its factors its number stands, from 1; 0: there is none, or no order.
  constexpr int number_at() const {
    return nesting.factors ? nesting.number : normal.is_constant() && normal.terms && normal.value() != 1 ? 1 : 0;
  }
  constexpr const Symbol& factor(int i) const { return normal.term[0].factor[nesting.factor[i]]; }

  /// Equal, and position for position the same as far as axes say: CLS + N is not N + CLS, and H * K is not K * H.
  /// Where a number stands, GH * 2 or 2 * GH, is what splits and merges ask for alone: people write both for one size.
  constexpr bool lines_up_with(const Dim& other) const {
    return *this == other && (order == other.order || order.parts == 0 || other.order.parts == 0) && same_axes(other);
  }
  /// Whether the factors stand in the same order, where both have one.
  constexpr bool nests_as(const Dim& other) const {
    return same_axes(other) && (!nesting.factors || !other.nesting.factors || nesting.number == other.nesting.number);
  }
  constexpr bool same_axes(const Dim& other) const {
    FactorOrder mine = nesting, its = other.nesting;
    mine.number = its.number = 0;
    return mine == its || mine.factors == 0 || its.factors == 0;
  }

  /// 3*K*H, in the order that is known.
  constexpr void print_factors(Text& out) const {
    for (int i = 0; i <= factors(); ++i) {
      if (i + 1 == number_at()) out.put(i ? "*" : "").put(normal.term[0].coefficient);
      if (i < factors()) out.put(i || number_at() == 1 ? "*" : "").put(factor(i).name);
    }
  }

  friend constexpr Dim operator+(const Dim& a, const Dim& b) {
    Dim sum{a.shown + b.shown, a.normal + b.normal};
    if (a.parts() == 0 || b.parts() == 0 || a.parts() + b.parts() != sum.normal.terms) return sum;
    for (int i = 0; i < sum.normal.terms; ++i) {
      const Term& next = i < a.parts() ? a.part(i) : b.part(i - a.parts());
      for (int k = 0; k < sum.normal.terms; ++k)
        if (sum.normal.term[k].same_factors(next)) sum.order.term[i] = static_cast<std::int8_t>(k);
    }
    sum.order.parts = sum.normal.terms;
    return sum;
  }
  friend constexpr Dim operator-(const Dim& a, const Dim& b) { return {a.shown - b.shown, a.normal - b.normal}; }
  friend constexpr Dim operator*(const Dim& a, const Dim& b) {
    Dim product{a.shown * b.shown, a.normal * b.normal};
    const int left = a.factors(), right = b.factors(), of_a = a.number_at(), of_b = b.number_at();
    if (left < 0 || right < 0 || left + right < (of_a || of_b ? 1 : 2) || product.normal.overflow) return product;
    if (of_a && of_b && (of_a != left + 1 || of_b != 1)) return product;
    bool taken[Term::capacity]{};
    for (int i = 0; i < left + right; ++i) {
      const Symbol& next = i < left ? a.factor(i) : b.factor(i - left);
      int k = 0;
      while (taken[k] || !(product.normal.term[0].factor[k] == next)) ++k;
      taken[k] = true;
      product.nesting.factor[i] = static_cast<std::int8_t>(k);
    }
    product.nesting.factors = left + right;
    product.nesting.number = static_cast<std::int8_t>(of_a ? of_a : of_b ? left + of_b : 0);
    return product;
  }
  constexpr bool operator==(const Dim& other) const { return normal == other.normal; }

  constexpr bool known() const { return normal.known(); }
  /// The value with every unsized symbol (the batch) replaced by `unsized`.
  constexpr std::int64_t value(std::int64_t unsized = 0) const { return normal.value(unsized); }

  /// N+1=197 for what has a size and a name, 3 for a number, B for what is known later.
  constexpr void print(Text& out) const {
    shown.print(out);
    if (known() && !shown.is_constant()) out.put("=").put(value());
  }
};

}  // namespace tessera
