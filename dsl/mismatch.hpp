// The words for two shapes that differ: which axes, and what may have been meant.
#pragma once

#include "dsl/shape.hpp"

namespace tessera {

/// Adds " (D := H*K)" for a dim that is shown by the names of defined axes; nothing where it reads as it is.
constexpr void put_definition(Text& t, const Dim& d) {
  if (d.shown == d.normal) return;
  t.put(" (");
  d.shown.print(t);
  t.put(" := ");
  d.normal.print(t);
  t.put(")");
}

/// Adds what may have been meant where `got` stands and `needed` should, as a bracket; nothing where there is no idea.
constexpr void suggest(Text& t, const Dim& got, const Dim& needed, int axis) {
  const Dim one = Dim::constant(1);
  if (got + one == needed) {
    t.put(" (one short: was the class token forgotten?)");
  } else if (needed + one == got) {
    t.put(" (one too many: does it still hold the class token?)");
  } else if (!got.known() || !needed.known()) {
    t.put(" (cannot be proved equal: a size is known only when the program runs)");
  } else if (got.value() == needed.value()) {
    t.put(" (equal sizes, different names: if they mean the same, say so with rename<").put(std::int64_t{axis});
    t.put(">(x, ");
    needed.shown.print(t);
    t.put("))");
  } else {
    put_definition(t, needed);
  }
}

/// Adds where two shapes differ and one suggestion: "axis 1 is N=49, needs N+1=50 (one short: ...)".
constexpr void explain_mismatch(Text& t, const Shape& got, const Shape& needed) {
  if (got.rank != needed.rank) {
    t.put("it has ").put(std::int64_t{got.rank}).put(got.rank == 1 ? " axis" : " axes").put(", needs ");
    t.put(std::int64_t{needed.rank});
    return;
  }
  int first = -1;
  for (int i = 0; i < got.rank; ++i) {
    if (got[i] == needed[i]) continue;
    if (first >= 0)
      t.put(", ");
    else
      first = i;
    t.put("axis ").put(std::int64_t{i}).put(" is ");
    got[i].print(t);
    t.put(", needs ");
    needed[i].print(t);
  }
  suggest(t, got[first], needed[first], first);
}

}  // namespace tessera
