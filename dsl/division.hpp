// Exact division of dims, and the sentence for what does not divide.
#pragma once

#include <cstdint>

#include "dsl/polynomial.hpp"
#include "dsl/text.hpp"

namespace tessera {

/// a / b: exact or the reason why not.
struct Division {
  enum class Result : std::uint8_t {
    exact,
    remainder,  ///< both sizes are known and b leaves a remainder
    no_factor,  ///< the numbers divide, but b is not a factor of a by definition
    unknown,    ///< the sizes are known only when the program runs
    zero,
  } result = Result::exact;
  Dim quotient{};

  /// Adds the sentence for an inexact division of a by b; nothing for an exact one.
  constexpr void explain(Text& t, const Dim& a, const Dim& b) const {
    if (result == Result::exact) return;
    a.print(t);
    t.put(" / ");
    b.print(t);
    if (result == Result::zero) {
      t.put(" divides by zero [dim-division]");
    } else if (result == Result::unknown) {
      t.put(
          " cannot be proved exact: a size is known only when the program runs; divide an axis of known size "
          "[dim-division]");
    } else if (result == Result::no_factor) {
      t.put(" is exact in numbers only: ");
      b.shown.print(t);
      t.put(" is no factor of ");
      a.shown.print(t);
      if (!(a.shown == a.normal)) {
        t.put(" (");
        a.shown.print(t);
        t.put(" := ");
        a.normal.print(t);
        t.put("); divide by a factor of it, or");
      } else {
        t.put("; where that is meant,");
      }
      t.put(" declare the quotient as an axis of its own, Q = axis<Q, ").put(a.value() / b.value());
      t.put(">, and define ");
      a.shown.print(t);
      t.put(" as the product, the outer one first: ");
      const std::string_view suffix = b.shown.is_constant() ? "_c" : "";
      b.shown.print(t);
      t.put(suffix).put(" * Q or Q * ");
      b.shown.print(t);
      t.put(suffix).put(" [dim-factor]");
    } else {
      const std::int64_t av = a.value(), bv = b.value();
      t.put(" is not exact: it leaves ").put(av % bv).put("; nearest that work: ");
      std::int64_t below = bv, above = bv;
      constexpr int tries = 50'000;  // compilers stop a loop that runs longer
      for (int i = 0; below > 1 && av % below != 0; ++i) below = i < tries ? below - 1 : 1;
      for (int i = 0; above < av && av % above != 0; ++i) above = i < tries ? above + 1 : av + 1;
      const auto put_nearest = [&](std::int64_t value) {
        if (!b.shown.is_constant()) {
          b.shown.print(t);
          t.put("=");
        }
        t.put(value);
      };
      put_nearest(below);
      if (above <= av) {
        t.put(" or ");
        put_nearest(above);
      }
      t.put("; or ");
      if (av > bv) t.put(av / bv * bv).put(" or ");
      std::int64_t more = 0;
      if (!__builtin_mul_overflow(av / bv + 1, bv, &more)) t.put(more).put(" ");
      t.put("in place of ").put(av).put(" [dim-division]");
    }
  }
};

/// Divides as polynomials where that goes; as numbers where a is a number. A named axis is only what its definition
/// says: D=192 without a definition has no factor H, although 3 divides 192.
constexpr Division divide(const Dim& a, const Dim& b) {
  using Result = Division::Result;
  if (b.normal.terms == 0) return {Result::zero, {}};
  Polynomial quotient, shown;
  if (Polynomial::divide(a.normal, b.normal, quotient)) {
    // 3*D / 3 is shown as D, and D / H as K where D := H*K.
    if (!Polynomial::divide(a.shown, b.shown, shown)) shown = quotient;
    return {Result::exact, {shown, quotient}};
  }
  if (!a.known() || !b.known()) return {Result::unknown, {}};
  if (b.value() == 0) return {Result::zero, {}};
  if (a.value() % b.value() != 0) return {Result::remainder, {}};
  if (!a.normal.is_constant()) return {Result::no_factor, {}};
  return {Result::exact, Dim::constant(a.value() / b.value())};
}

}  // namespace tessera
