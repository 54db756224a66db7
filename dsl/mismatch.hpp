// The words for two shapes that differ: which axes, and what may have been meant.
#pragma once

#include <string_view>

#include "dsl/shape.hpp"

namespace tessera {

namespace detail {

/// The axes of a shape as names of a pattern: [B, H=3, N+1=197, K=64] is "b h n k", an axis of size 1 is "1".
/// Where first letters collide, names stand in full.
class AxisNames {
 public:
  constexpr explicit AxisNames(const Shape& shape) : rank_(shape.rank) {
    for (int i = 0; i < rank_; ++i) make(i, shape[i], 1);
    for (int i = 0; i < rank_; ++i)
      for (int k = 0; k < i; ++k)
        if (name(i) == name(k) && name(i) != "1") {
          make(i, shape[i], longest);
          make(k, shape[k], longest);
          clear_ &= name(i) != name(k);
        }
  }

  /// Whether every axis has a name of its own.
  constexpr bool clear() const { return clear_; }
  constexpr std::string_view name(int i) const { return {chars_[i], static_cast<std::size_t>(size_[i])}; }

 private:
  static constexpr int longest = 12;

  constexpr void make(int i, const Dim& dim, int letters) {
    size_[i] = 0;
    const Polynomial& shown = dim.shown;
    int named = 0;
    while (named < shown.terms && shown.term[named].factors == 0) ++named;
    if (named < shown.terms) {
      for (const char c : shown.term[named].factor[0].name.substr(0, static_cast<std::size_t>(letters)))
        chars_[i][size_[i]++] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      clear_ &= chars_[i][0] >= 'a' && chars_[i][0] <= 'z' && chars_[i][size_[i] - 1] != '_';
    } else {
      chars_[i][size_[i]++] = '1';
      clear_ &= dim == Dim::constant(1);
    }
  }

  int rank_;
  char chars_[Shape::capacity][longest]{};
  int size_[Shape::capacity]{};
  bool clear_ = true;
};

/// How the axes of one shape make up those of another with as many or fewer.
struct Grouping {
  bool complete = false;
  int group[Shape::capacity]{};  ///< of each axis of the longer shape: the axis it goes into; -1: it is 1 and goes away
  bool reversed[Shape::capacity]{};  ///< of each axis of the other: it is the later one times the earlier one
};

/// Each axis of `few` is one of `many`, or the product of two in the order that it is defined by; what is left of
/// `many` is of size 1.
constexpr Grouping group_axes(const Shape& many, const Shape& few) {
  Grouping g;
  for (int& group : g.group) group = -1;
  for (int f = 0; f < few.rank; ++f) {
    bool found = false;
    for (int i = 0; i < many.rank && !found; ++i)
      if (g.group[i] < 0 && many[i].lines_up_with(few[f])) {
        g.group[i] = f;
        found = true;
      }
    for (int i = 0; i < many.rank && !found; ++i)
      for (int k = i + 1; k < many.rank && !found; ++k) {
        if (g.group[i] >= 0 || g.group[k] >= 0 || !(many[i] * many[k] == few[f])) continue;
        g.reversed[f] = !(many[i] * many[k]).nests_as(few[f]);
        found = !g.reversed[f] || (many[k] * many[i]).nests_as(few[f]);
        if (found) g.group[i] = g.group[k] = f;
      }
    if (!found) return g;
  }
  for (int i = 0; i < many.rank; ++i)
    if (g.group[i] < 0 && !(many[i] == Dim::constant(1))) return g;
  g.complete = true;
  return g;
}

/// "b h n k", or with groups "b n (h k)"
constexpr void put_side(Text& t, const AxisNames& names, int rank) {
  for (int i = 0; i < rank; ++i) t.put(i ? " " : "").put(names.name(i));
}
constexpr void put_side(Text& t, const AxisNames& names, const Grouping& grouping, int rank, int groups) {
  for (int f = 0; f < groups; ++f) {
    int members = 0;
    for (int i = 0; i < rank; ++i) members += grouping.group[i] == f;
    t.put(f ? " " : "").put(members > 1 ? "(" : "");
    for (int at = 0, n = 0; at < rank; ++at)
      if (const int i = grouping.reversed[f] ? rank - 1 - at : at; grouping.group[i] == f)
        t.put(n++ ? " " : "").put(names.name(i));
    t.put(members > 1 ? ")" : "");
  }
}

/// Whether a dim is shown as one axis, which is how code writes it, too.
constexpr bool is_name(const Dim& d) {
  return d.shown.terms == 1 && d.shown.term[0].coefficient == 1 && d.shown.term[0].factors == 1;
}

/// The factors of the axes of two shapes, each with a name of its own.
struct Factors {
  static constexpr int capacity = 12;
  struct Factor {
    Symbol symbol{};
    char name[13]{};
    int size = 0;
    bool placed = false;  ///< in the other shape
    constexpr std::string_view view() const { return {name, static_cast<std::size_t>(size)}; }
  };
  int count = 0;
  Factor factor[capacity]{};

  constexpr bool named(std::string_view name) const {
    for (int i = 0; i < count; ++i)
      if (factor[i].view() == name) return true;
    return false;
  }
  /// Adds a factor, called as its symbol in small letters, the second P as the next letter, q.
  constexpr bool add(const Symbol& symbol) {
    if (count == capacity || symbol.name.size() > 12) return false;
    Factor next{.symbol = symbol};
    for (const char c : symbol.name)
      next.name[next.size++] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (named(next.view())) next.size = 1;
    while (named(next.view()))
      if (++next.name[0] > 'z') return false;
    factor[count++] = next;
    return true;
  }
};

/// Adds "did you mean rearrange<b c (gh p) (gw q) -> b (gh gw) (c p q)>?" where the axes of both shapes are products of
/// the same factors in a known order, with `before` in front;
/// else nothing, and the answer is false.
constexpr bool suggest_factors(Text& t, const char* before, const Shape& x, const Shape& to) {
  // An axis that both have stays whole.
  const auto whole = [](const Dim& d, const Shape& other) {
    bool found = false;
    for (int i = 0; i < other.rank; ++i) found |= is_name(d) && other[i].lines_up_with(d);
    return found;
  };
  const auto members = [&](const Dim& d, const Shape& other) {
    return whole(d, other) ? 1 : d.number_at() ? -1 : d.factors();
  };
  const auto member = [&](const Dim& d, const Shape& other, int k) {
    return whole(d, other) ? d.shown.term[0].factor[0] : d.factor(k);
  };
  Factors factors;
  for (int i = 0; i < x.rank; ++i) {
    if (members(x[i], to) < 1) return false;
    for (int k = 0; k < members(x[i], to); ++k)
      if (!factors.add(member(x[i], to, k))) return false;
  }
  int order[Factors::capacity]{}, placed = 0;  // those of `to`, one after the other
  for (int i = 0; i < to.rank; ++i) {
    if (members(to[i], x) < 1) return false;
    for (int k = 0; k < members(to[i], x); ++k, ++placed) {
      const Symbol symbol = member(to[i], x, k);
      int f = 0;
      while (f < factors.count && (factors.factor[f].placed || !(factors.factor[f].symbol == symbol))) ++f;
      if (f == factors.count) return false;
      factors.factor[f].placed = true;
      order[placed] = f;
    }
  }
  if (placed != factors.count) return false;
  const auto put_axes = [&](const Shape& shape, const Shape& other, auto of) {
    for (int i = 0, at = 0; i < shape.rank; ++i) {
      const int count = members(shape[i], other);
      t.put(i ? " " : "").put(count > 1 ? "(" : "");
      for (int k = 0; k < count; ++k, ++at) t.put(k ? " " : "").put(factors.factor[of(at)].view());
      t.put(count > 1 ? ")" : "");
    }
  };
  t.put(before).put("did you mean rearrange<");
  put_axes(x, to, [](int at) { return at; });
  t.put(" -> ");
  put_axes(to, x, [&](int at) { return order[at]; });
  t.put(">?");
  return true;
}

}  // namespace detail

/// Adds "did you mean rearrange<b h n k -> b n (h k)>?" where permuting, merging or splitting axes of `got`, or
/// its axes' factors, gives `needed`, with `before` in front; else nothing, and the answer is false.
constexpr bool suggest_rearrange(Text& t, const char* before, const Shape& got, const Shape& needed) {
  const bool merges = got.rank >= needed.rank;
  const Shape &many = merges ? got : needed, &few = merges ? needed : got;
  const detail::AxisNames names(many);
  const detail::Grouping grouping = detail::group_axes(many, few);
  if (got == needed) return false;
  if (!grouping.complete) return detail::suggest_factors(t, before, got, needed);
  if (!names.clear()) return false;
  t.put(before).put("did you mean rearrange<");
  if (merges)
    detail::put_side(t, names, many.rank);
  else
    detail::put_side(t, names, grouping, many.rank, few.rank);
  t.put(" -> ");
  if (merges)
    detail::put_side(t, names, grouping, many.rank, few.rank);
  else
    detail::put_side(t, names, many.rank);
  t.put(">?");
  return true;
}

/// Adds " (nothing is stretched silently: did you mean repeat<b 1 d -> b n d>?)" where `got` becomes `needed` by new
/// axes and longer ones of size 1, or expand_as where that needs no word; else nothing, and the answer is false.
constexpr bool suggest_repeat(Text& t, const Shape& got, const Shape& needed) {
  const detail::AxisNames left(got), right(needed);
  int at = 0, alike = 0;
  for (int i = 0; i < needed.rank; ++i) {
    if (at < got.rank && (got[at].lines_up_with(needed[i]) || got[at] == Dim::constant(1))) ++at;
    for (int k = 0; k < got.rank; ++k) alike += got[k].lines_up_with(needed[i]) && !(got[k] == Dim::constant(1));
  }
  if (at < got.rank || got == needed || !left.clear() || !right.clear()) return false;
  t.put(" (nothing is stretched silently: did you mean repeat<");
  detail::put_side(t, left, got.rank);
  t.put(" -> ");
  detail::put_side(t, right, needed.rank);
  t.put(alike == got.rank ? ">, or expand_as?)" : ">?)");
  return true;
}

/// Adds " (N+1=197 is one axis too many: did you mean take<1>(x, 0_c), a position of it, or mean<1>(x)?)" where `got`
/// is `needed` and one axis more; else nothing, and the answer is false.
constexpr bool suggest_pooling(Text& t, const Shape& got, const Shape& needed) {
  if (got.rank != needed.rank + 1) return false;
  int extra = 0;
  while (extra < needed.rank && got[extra].lines_up_with(needed[extra])) ++extra;
  for (int i = extra; i < needed.rank; ++i)
    if (!got[i + 1].lines_up_with(needed[i])) return false;
  if (!got[extra].known()) return false;  // the batch
  t.put(" (");
  got[extra].print(t);
  t.put(" is one axis too many: did you mean take<").put(std::int64_t{extra});
  t.put(">(x, 0_c), a position of it, or mean<").put(std::int64_t{extra}).put(">(x)?)");
  return true;
}

/// Replaces the end of a suggestion, "?)", by ", or mean<1>(x) or take<1>(x, 0_c) of the other?)", of the axis that
/// only the larger one has.
constexpr void suggest_pooling_instead(Text& t, const Shape& small, const Shape& large) {
  int extra = 0;
  while (extra < small.rank && large[extra].lines_up_with(small[extra])) ++extra;
  if (extra == 0) return;  // the batch, or what all images have
  t.size -= 2;
  t.put(", or mean<").put(std::int64_t{extra}).put(">(x) or take<").put(std::int64_t{extra});
  t.put(">(x, 0_c) of the other?)");
}

/// Adds how two maps [B, C, rows, columns] of other rows and columns come to have the same: an upsampling or a stride,
/// where the one has a number of times as many of both; a padding, where the smaller lacks as many of both; else
/// nothing, and the answer is false.
constexpr bool suggest_map_size(Text& t, const Shape& a, const Shape& b) {
  if (a.rank != 4 || b.rank != 4 || !(a[0] == b[0])) return false;
  for (const int i : {2, 3})
    if (!a[i].known() || !b[i].known() || b[i].value() < 1 || a[i].value() < 1) return false;
  const bool a_is_larger = a[2].value() > b[2].value();
  const Shape &large = a_is_larger ? a : b, &small = a_is_larger ? b : a;
  const std::int64_t rows = large[2].value(), columns = large[3].value();
  const std::int64_t times = rows / small[2].value(), lacks = rows - small[2].value();
  if (times > 1 && rows == times * small[2].value() && columns == times * small[3].value()) {
    t.put(" (").put(times).put(" times as many rows and columns: did you mean repeat<b c y x -> b c (y ").put(times);
    t.put(") (x ").put(times).put(")> of the smaller, or Convolution{.stride = ").put(times).put("} for the larger?)");
    return true;
  }
  if (lacks < 2 || lacks % 2 || columns - small[3].value() != lacks) return false;
  t.put(" (").put(lacks).put(" rows and columns short: did you mean Convolution{.padding = ").put(lacks / 2).put("}?)");
  return true;
}

/// Adds "D := H*K" with `before` and `after` around it, for a dim that is shown by the names of defined axes; nothing
/// where it reads as it is.
constexpr void put_definition(Text& t, const char* before, const Dim& d, const char* after) {
  if (d.shown == d.normal) return;
  t.put(before);
  d.shown.print(t);
  t.put(" := ");
  d.normal.print(t);
  t.put(after);
}

namespace detail {

/// How many times `got` is as long as `needed`, where it is written so: 2*M, but not M := 4*D; else 0.
constexpr std::int64_t times_as_long(const Dim& got, const Dim& needed) {
  Polynomial times;
  for (const Polynomial* one : {&needed.shown, &needed.normal})
    if (!one->is_constant() && Polynomial::divide(got.shown, *one, times) && times.is_constant()) return times.value();
  return 0;
}

/// Whether `whole` is a sum of which `part` lacks one term, which is then `rest`: the registers of N + 1 + R.
constexpr bool lacks_one_part(const Dim& part, const Dim& whole, Dim& rest) {
  rest = whole - part;
  rest.shown = rest.normal;
  return whole.normal.terms == part.normal.terms + 1 && part.normal.terms > 0 && rest.normal.terms == 1 &&
         rest.normal.term[0].coefficient > 0;
}

}  // namespace detail

/// Adds a dim as code writes it: N + 1_c, 3_c * H.
constexpr void put_code(Text& t, const Polynomial& p) {
  if (p.terms == 0) t.put("0_c");
  for (int i = 0; i < p.terms; ++i) {
    const Term& term = p.term[i];
    const std::int64_t size = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    t.put(i == 0 ? (term.coefficient < 0 ? "-" : "") : term.coefficient < 0 ? " - " : " + ");
    if (term.factors == 0 || size != 1) t.put(size).put(term.factors ? "_c * " : "_c");
    for (int k = 0; k < term.factors; ++k) t.put(k ? " * " : "").put(term.factor[k].name);
  }
}

namespace detail {

/// 1 or -1: `part` is written as the first or the last of the parts of `whole`; 0: between others, or in no order.
constexpr int end_of(const Dim& part, const Dim& whole) {
  if (whole.parts() < 2 || part.normal.terms != 1) return 0;
  if (whole.part(0).same_factors(part.normal.term[0])) return 1;
  return whole.part(whole.parts() - 1).same_factors(part.normal.term[0]) ? -1 : 0;
}

/// Adds "did you mean slice<1>(x, 1_c, N)?"
constexpr void suggest_slice(Text& t, int axis, const Polynomial& from, const Polynomial& length) {
  t.put("did you mean slice<").put(std::int64_t{axis}).put(">(x, ");
  put_code(t, from);
  t.put(", ");
  put_code(t, length);
  t.put(")?");
}

/// Adds "did you mean concat<1>(r, x)?" of the part `rest` of `needed`, r being R's name in small letters; nothing
/// where its place is between others.
constexpr void suggest_concat(Text& t, int axis, const Dim& rest, const Dim& needed) {
  const int end = end_of(rest, needed);
  if ((needed.parts() && !end) || rest.normal.term[0].factors != 1) return;
  t.put(" did you mean concat<").put(std::int64_t{axis}).put(end < 0 ? ">(x, " : ">(");
  for (const char c : rest.normal.term[0].factor[0].name) {
    const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    t.put(std::string_view(&small, 1));
  }
  t.put(end < 0 ? ")?" : ", x)?");
}

}  // namespace detail

/// Whether a text says what may have been meant.
constexpr bool says_what_was_meant(const Text& t) {
  return t.view().find('?') != t.view().npos || t.view().find("rename<") != t.view().npos;
}

/// Adds what may have been meant where `got` stands and `needed` should, as a bracket; nothing where there is no idea.
/// `layer`: of channels, between which a layer may be missing, what stands before its name; else empty.
constexpr void suggest(Text& t, const Dim& got, const Dim& needed, int axis, std::string_view layer = {}) {
  const Dim one = Dim::constant(1);
  Dim rest;
  if (got == needed && !got.nests_as(needed)) {
    t.put(" (the same factors in another order: ");
    got.print_factors(t);
    t.put(" is not ");
    needed.print_factors(t);
    t.put("; did you mean ");
    needed.print_factors(t);
    t.put(" where it was merged?)");
  } else if (got == needed) {
    t.put(" (the same parts in another order: did you mean ");
    for (int i = 0; i < needed.parts(); ++i) {
      Polynomial part;
      part.add(needed.part(i));
      t.put(i ? ", " : "");
      part.print(t);
    }
    t.put(" in the concat?)");
  } else if (got + one == needed) {
    t.put(" (one short: was the class token forgotten? did you mean concat<").put(std::int64_t{axis});
    t.put(">(token, x)?)");
  } else if (needed + one == got) {
    t.put(" (one too many: does it still hold the class token? ");
    detail::suggest_slice(t, axis, one.normal, needed.shown);
    t.put(")");
  } else if (detail::lacks_one_part(got, needed, rest)) {
    t.put(" (short of ");
    rest.print(t);
    t.put(": was it left out of a concat?");
    detail::suggest_concat(t, axis, rest, needed);
    t.put(")");
  } else if (detail::lacks_one_part(needed, got, rest)) {
    t.put(" (too long by ");
    rest.print(t);
    t.put(": is a slice missing?");
    if (const int end = detail::end_of(rest, got)) {
      t.put(" ");
      detail::suggest_slice(t, axis, end > 0 ? rest.normal : Polynomial{}, needed.shown);
    }
    t.put(")");
  } else if (const std::int64_t times = detail::times_as_long(got, needed); times > 1) {
    t.put(" (").put(times).put(" times as long: did you mean one of its parts, chunk<").put(std::int64_t{axis});
    t.put(">(x, ").put(times).put("_c)?)");
  } else if ((got == one && !needed.known()) || (needed == one && !got.known())) {
    t.put(" (nothing is stretched silently: did you mean a repeat over ");
    (got == one ? needed : got).print(t);
    t.put("?)");
  } else if (!got.known() || !needed.known()) {
    t.put(" (cannot be proved equal: a size is known only when the program runs)");
  } else if (got.value() == needed.value()) {
    t.put(" (equal sizes, different names: if they mean the same, say so with rename<").put(std::int64_t{axis});
    t.put(">(x, ");
    needed.shown.print(t);
    t.put("))");
  } else if (detail::is_name(got) && detail::is_name(needed) &&
             got.shown.term[0].factor[0].name == needed.shown.term[0].factor[0].name) {
    t.put(" (two axes have the name ").put(got.shown.term[0].factor[0].name);
    t.put(": did you mean a part with the axes of this model?)");
  } else if (const std::int64_t parts = detail::times_as_long(needed, got); layer.size() && parts > 1) {
    t.put(" (").put(parts).put(" times as short: did you mean a concat<").put(std::int64_t{axis}).put("> of ");
    t.put(parts).put("?)");
  } else if (layer.size() && detail::is_name(got) && detail::is_name(needed)) {
    t.put(" (");
    put_definition(t, "", needed, "; ");
    t.put("did you mean ").put(layer).put("Linear<");
    got.shown.print(t);
    t.put(", ");
    needed.shown.print(t);
    t.put("> in between?)");
  } else {
    put_definition(t, " (", needed, ")");
  }
}

/// Adds where two shapes differ and one suggestion: "axis 1 is N=49, needs N+1=50 (one short: ...)".
/// `layer`: as in suggest, of the last axis.
constexpr void explain_mismatch(Text& t, const Shape& got, const Shape& needed, std::string_view layer = {}) {
  int first = -1;
  if (got.rank != needed.rank) {
    t.put("it has ").put(std::int64_t{got.rank}).put(got.rank == 1 ? " axis" : " axes").put(", needs ");
    t.put(std::int64_t{needed.rank});
  } else {
    constexpr int told = 4;  // more would not fit a sentence
    int differing = 0;
    for (int i = 0; i < got.rank; ++i) {
      if (got[i].lines_up_with(needed[i]) || ++differing > told) continue;
      if (first < 0) first = i;
      t.put(differing > 1 ? ", axis " : "axis ").put(std::int64_t{i}).put(" is ");
      got[i].print(t);
      t.put(", needs ");
      needed[i].print(t);
    }
    if (differing > told) t.put(", and ").put(std::int64_t{differing} - told).put(" more");
  }
  if (suggest_rearrange(t, " (", got, needed))
    t.put(")");
  else if (!suggest_pooling(t, got, needed) && first >= 0)
    suggest(t, got[first], needed[first], first, first > 0 && first == got.rank - 1 ? layer : "");
}

}  // namespace tessera
