// Elementwise arithmetic of a tensor and a plain number.
#pragma once

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

/// The number stands on the left.
template <graph::Op Op, class X>
auto number_with(double number, const X& x) {
  if constexpr (poisoned<X>) {
    return Poison{};
  } else {
    graph::Builder& r = recorder();
    return TensorOf<typename X::dims>(r.binary(Op, r.constant(number), node_of(x)));
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

/// s - x, a number minus every element. PyTorch equivalent: s - x.
template <AnyTensor X>
auto operator-(double s, const X& x) {
  return detail::number_with<graph::Op::subtract>(s, x);
}

/// s / x, a number divided by every element. PyTorch equivalent: s / x.
template <AnyTensor X>
auto operator/(double s, const X& x) {
  return detail::number_with<graph::Op::divide>(s, x);
}

}  // namespace tessera
