// A tensor and a plain number; and the square root of a dim, which is such a number.
#pragma once

#include <cmath>

#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

template <graph::Op Op, class X>
auto with_number(const X& x, double number) {
  if constexpr (poisoned<X>) {
    return Poison{};
  } else {
    graph::Builder& r = recorder();
    return TensorOf<typename X::dims>(r.binary(Op, node_of(x), r.constant(number)));
  }
}

}  // namespace detail

/// x * s, every element times a number. PyTorch equivalent: x * s.
template <AnyTensor X>
auto operator*(const X& x, double s) {
  return detail::with_number<graph::Op::multiply>(x, s);
}
template <AnyTensor X>
auto operator*(double s, const X& x) {
  return x * s;
}

/// x / s, as a multiplication by 1/s, which rounds once more but is what a fused scale does. PyTorch equivalent: x / s.
template <AnyTensor X>
auto operator/(const X& x, double s) {
  return x * (1 / s);
}

/// x + s, every element plus a number. PyTorch equivalent: x + s.
template <AnyTensor X>
auto operator+(const X& x, double s) {
  return detail::with_number<graph::Op::add>(x, s);
}
template <AnyTensor X>
auto operator+(double s, const X& x) {
  return x + s;
}

/// x - s, every element minus a number. PyTorch equivalent: x - s.
template <AnyTensor X>
auto operator-(const X& x, double s) {
  return x + -s;
}

/// The square root of a dim's size, for scores / sqrt(K). The size has to be known, else [dim-unknown].
/// PyTorch equivalent: math.sqrt(k).
template <DimExpression E>
double sqrt(E) {
  constexpr auto problem = [] {
    Text t;
    if (E::poisoned || E::value.known()) return t;
    t.put("sqrt(");
    E::value.print(t);
    t.put(") needs the size of ");
    E::value.print(t);
    t.put(", which is known only when the program runs [dim-unknown]");
    return t;
  };
  if constexpr (!fits<decltype(problem)>) refuse<decltype(problem)>();
  return std::sqrt(static_cast<double>(E::value.value()));
}

}  // namespace tessera
