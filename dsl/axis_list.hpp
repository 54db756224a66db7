// Several axes of one tensor, as template arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dsl/axis_ref.hpp"
#include "dsl/shape.hpp"

namespace tessera::detail {

/// Axes of a shape D, each of which has to be there, and only once.
template <class D, AxisRef... axes>
struct AxisList {
  static constexpr int size = sizeof...(axes);
  static constexpr bool poisoned = D::poisoned || (axes.poisoned || ...);
  static constexpr std::array<int, sizeof...(axes) + 1> at{axis_index(axes, D::shape)..., -1};

  static constexpr bool has(int axis) {
    for (int i = 0; i < size; ++i)
      if (at[static_cast<std::size_t>(i)] == axis) return true;
    return false;
  }

  /// Adds "op<0, 2> of [B, N, D]: ".
  static constexpr void begin(Text& t, const char* op) {
    t.put(op).put("<");
    int i = 0;
    ((t.put(i++ ? ", " : ""), axes.print(t)), ...);
    t.put("> of ");
    D::shape.print(t);
    t.put(": ");
  }

  /// Adds the sentence for an axis that is not there, or given twice; nothing where all is well.
  static constexpr void explain(Text& t, const char* op) {
    ((t.size ? void() : explain_axis(t, op, axes, D::shape)), ...);
    for (int i = 0; !t.size && i < size; ++i)
      for (int k = 0; !t.size && k < i; ++k) {
        if (at[static_cast<std::size_t>(i)] != at[static_cast<std::size_t>(k)]) continue;
        begin(t, op);
        t.put("axis ").put(std::int64_t{at[static_cast<std::size_t>(i)]}).put(" is given twice [axis-twice]");
      }
  }

  /// The axes, ascending.
  static std::vector<int> sorted() {
    std::vector<int> all;
    for (int axis = 0; axis < D::rank; ++axis)
      if (has(axis)) all.push_back(axis);
    return all;
  }

 private:
  static constexpr auto make_rest() {
    std::array<int, static_cast<std::size_t>(D::rank) + 1> rest{};
    int n = 0;
    for (int axis = 0; axis < D::rank; ++axis)
      if (!has(axis)) rest[static_cast<std::size_t>(n++)] = axis;
    return rest;
  }
  static constexpr auto rest_ = make_rest();

  template <int... I>
  static Dims<typename D::template at<rest_[I]>...> without_them(std::integer_sequence<int, I...>);

 public:
  /// D without these axes; asked for where all is well.
  using rest = decltype(without_them(std::make_integer_sequence<int, D::rank - size>{}));
};

}  // namespace tessera::detail
