// The tensor that one writes first: sizes are template arguments, and what does not fit matches no function.
#pragma once

template <int... Sizes>
struct Tensor {
  float data[(1 * ... * Sizes)];
};

/// Elementwise, of equal shapes.
template <int... S>
Tensor<S...> operator+(const Tensor<S...>& a, const Tensor<S...>& b);

/// The second for every one of the first axis.
template <int First, int... S>
Tensor<First, S...> operator+(const Tensor<First, S...>& a, const Tensor<S...>& b);

/// A map of the last axis.
template <int B, int N, int In, int Out>
Tensor<B, N, Out> linear(const Tensor<B, N, In>& x, const Tensor<Out, In>& weight);

/// A product of matrices, for each of the first axis.
template <int B, int I, int J, int K>
Tensor<B, I, K> matmul(const Tensor<B, I, J>& a, const Tensor<B, J, K>& b);

template <int B, int I, int J>
Tensor<B, J, I> transpose(const Tensor<B, I, J>& x);

template <int... To, int... From>
Tensor<To...> reshape(const Tensor<From...>&) {
  static_assert((1 * ... * To) == (1 * ... * From), "a reshape keeps the number of elements");
  return {};
}

/// [B, N, D] -> [B, H, N, D / H]
template <int H, int B, int N, int D>
Tensor<B, H, N, D / H> split_heads(const Tensor<B, N, D>&) {
  static_assert(D % H == 0, "the heads do not divide the width");
  return {};
}
