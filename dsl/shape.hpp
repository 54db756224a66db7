// Shapes: as values for checks and sentences, and as type lists for results.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "dsl/dim.hpp"
#include "dsl/text.hpp"

namespace tessera {

/// A shape as a value. It points to the dims (each is a constant of its type), for they are too big to copy about.
struct Shape {
  static constexpr int capacity = 12;
  int rank = 0;
  const Dim* dim[capacity]{};

  constexpr const Dim& operator[](int i) const { return *dim[i]; }
  constexpr const Dim& back() const { return *dim[rank - 1]; }

  /// Axis for axis equal, and sums of named parts in the same order.
  constexpr bool operator==(const Shape& other) const {
    if (rank != other.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (!dim[i]->lines_up_with(*other.dim[i])) return false;
    return true;
  }

  /// [B, H=3, N+1=197, K=64]
  constexpr void print(Text& t) const {
    t.put("[");
    for (int i = 0; i < rank; ++i) {
      if (i) t.put(", ");
      dim[i]->print(t);
    }
    t.put("]");
  }

  std::vector<Dim> dims() const {
    std::vector<Dim> all;
    for (int i = 0; i < rank; ++i) all.push_back(*dim[i]);
    return all;
  }
};

/// A shape as a list of expression types.
template <class... Es>
struct Dims {
  static_assert(sizeof...(Es) <= Shape::capacity, "a tensor has at most 12 axes");
  static constexpr int rank = sizeof...(Es);
  static constexpr bool poisoned = (Es::poisoned || ...);
  static constexpr Shape shape{rank, {&Es::value...}};
  template <int I>
  using at = std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<Es...>>;
};

namespace detail {

template <class D, int I, class E, class Indices>
struct ReplaceAxis;
template <class D, int I, class E, int... Is>
struct ReplaceAxis<D, I, E, std::integer_sequence<int, Is...>> {
  template <int K>
  using pick = typename std::conditional_t<K == I, Dims<E>, Dims<typename D::template at<K>>>::template at<0>;
  using type = Dims<pick<Is>...>;
};

template <class D, int I, class Indices>
struct RemoveAxis;
template <class D, int I, int... Is>
struct RemoveAxis<D, I, std::integer_sequence<int, Is...>> {
  using type = Dims<typename D::template at<Is + (Is >= I)>...>;
};

}  // namespace detail

/// D with axis I replaced by E.
template <class D, int I, class E>
using replace_axis = typename detail::ReplaceAxis<D, I, E, std::make_integer_sequence<int, D::rank>>::type;

/// D without axis I.
template <class D, int I>
using remove_axis = typename detail::RemoveAxis<D, I, std::make_integer_sequence<int, D::rank - 1>>::type;

}  // namespace tessera
