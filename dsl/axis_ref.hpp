// Which axis an operation is along: its number, or what it is shown as.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dsl/dim.hpp"
#include "dsl/shape.hpp"
#include "dsl/text.hpp"

namespace tessera {

/// An axis of a tensor, as a template argument: softmax<-1>(x) by its number, from the back when negative, as in
/// PyTorch; softmax<J>(x) or softmax<"J">(x) by what it is shown as. A tensor may have one axis twice, as attention
/// scores have; then an alias tells them apart, which is a further axis with the first one as its definition:
///   inline constexpr auto T = axis<"T", N + 1_c>;
///   inline constexpr auto J = axis<"J", T>;
///   const Tensor<B, H, T, J> scores = einsum<"b h i k, b h j k -> b h i j">(q, k);
struct AxisRef {
  static constexpr int capacity = 48;

  int number = 0;
  char name[capacity + 1]{};  ///< empty where the axis is given by its number
  bool poisoned = false;
  std::uint32_t form = 0;  ///< of the axis itself: a hash of its normal form, to recognise it as a part of a sum

  constexpr AxisRef(int n) : number(n) {}
  template <std::size_t N>
  constexpr AxisRef(const char (&shown)[N]) {
    set({shown, N - 1});
  }
  template <DimExpression E>
  constexpr AxisRef(E) : poisoned(E::poisoned) {
    Text t;
    E::value.shown.print(t);
    set(t.view());
    form = form_of(E::value.normal);
  }

  /// FNV-1a of the printed polynomial.
  static constexpr std::uint32_t form_of(const Polynomial& p) {
    Text t;
    p.print(t);
    std::uint32_t hash = 2166136261;
    for (const char c : t.view()) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619;
    return hash;
  }

  constexpr std::string_view view() const { return name; }

  constexpr void print(Text& t) const {
    if (name[0])
      t.put(view());
    else
      t.put(std::int64_t{number});
  }

 private:
  constexpr void set(std::string_view shown) {
    for (std::size_t i = 0; i < shown.size() && i < std::size_t{capacity}; ++i) name[i] = shown[i];
  }
};

namespace detail {

/// How an axis is shown, without its size.
constexpr bool shown_as(const Dim& d, std::string_view name) {
  Text t;
  d.shown.print(t);
  return t.view() == name;
}

}  // namespace detail

namespace detail {

/// Whether a dim is a sum that has the axis as a term.
constexpr bool holds_part(const Dim& d, const AxisRef& axis) {
  for (const Polynomial* p : {&d.shown, &d.normal})
    for (int i = 0; p->terms > 1 && i < p->terms; ++i) {
      Polynomial term;
      term.add(p->term[i]);
      Text name;
      term.print(name);
      if (name.view() == axis.view() || (axis.form && AxisRef::form_of(term) == axis.form)) return true;
    }
  return false;
}

}  // namespace detail

namespace detail {

/// Whether two axes of x are the same and no mere numbers, as queries and keys of attention scores [B, H, T, T].
constexpr bool equal_named_axes(const Shape& x, int a, int b) { return x[a] == x[b] && !x[a].normal.is_constant(); }

}  // namespace detail

/// The number of the one axis of x that `axis` means, counted from the front; -1 where it means none or several.
constexpr int axis_index(const AxisRef& axis, const Shape& x) {
  if (!axis.name[0]) {
    const int at = axis.number < 0 ? axis.number + x.rank : axis.number;
    return at >= 0 && at < x.rank ? at : -1;
  }
  int found = -1;
  for (int i = 0; i < x.rank; ++i) {
    if (!detail::shown_as(x[i], axis.view())) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/// The sentence for an operation that was not told its axis.
constexpr Text axis_missing(const char* op, const Shape& x) {
  Text t;
  t.put(op).put(" of ");
  x.print(t);
  t.put(": it has to be said along which axis: ").put(op).put("<-1>(x) for the last");
  for (int i = x.rank - 1; i >= 0; --i) {
    Text name;
    x[i].shown.print(name);
    if (axis_index(AxisRef(i), x) != i || x[i].shown.is_constant() || x[i].shown.terms > 1) continue;
    t.put(", ").put(op).put("<").put(name.view()).put(">(x) for ").put(name.view());
    break;
  }
  t.put(" [axis-missing]");
  return t;
}

/// Adds the sentence for an axis that the shape does not have, or has twice; nothing where it has it once.
constexpr void explain_axis(Text& t, const char* op, const AxisRef& axis, const Shape& x) {
  if (axis_index(axis, x) >= 0) return;
  t.put(op);
  if (!axis.name[0]) {
    t.put(" over axis ").put(std::int64_t{axis.number}).put(" of ");
    x.print(t);
    if (x.rank)
      t.put(": it has axes 0 to ").put(std::int64_t{x.rank} - 1).put(" [axis-index]");
    else
      t.put(": it has no axes [axis-index]");
    return;
  }
  t.put("<").put(axis.view()).put("> of ");
  x.print(t);
  int first = -1, second = -1;
  for (int i = 0; i < x.rank; ++i)
    if (detail::shown_as(x[i], axis.view())) (first < 0 ? first : second) = i;
  if (first < 0) {
    t.put(": no axis is shown as ").put(axis.view());
    for (int i = 0; i < x.rank; ++i) {
      if (!detail::holds_part(x[i], axis)) continue;
      t.put(", which is a part of axis ").put(std::int64_t{i}).put(", ");
      x[i].print(t);
      if (x[i].parts())
        t.put(" (did you mean part<").put(axis.view()).put("> of it first?)");
      else
        t.put(" (did you mean axis<CLS, 1> for the 1, and then part<").put(axis.view()).put("> of it first?)");
      break;
    }
    t.put(" [axis-name]");
  } else {
    t.put(": axes ").put(std::int64_t{first}).put(" and ").put(std::int64_t{second}).put(" are both shown as ");
    t.put(axis.view()).put("; declare the tensor with an alias for one of them [axis-name]");
  }
}

}  // namespace tessera
