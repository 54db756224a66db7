// What cross attention gives has as many rows as the queries.
// expect: conversion of [B, WORDS=77, K=64] to the declared [B, N=196, K=64]: axis 1 is WORDS=77, needs N=196 (N :=
// GH*GW; did you mean to declare [B, WORDS=77, K=64]?) [conversion]
#include "axes.hpp"

namespace tessera {

inline constexpr auto WORDS = axis<"WORDS", 77>;

#ifdef TWIN
inline Tensor<B, WORDS, K> f(Tensor<B, WORDS, N> p, Tensor<B, N, K> v) { return einsum<"b i j, b j k -> b i k">(p, v); }
#else
inline Tensor<B, N, K> f(Tensor<B, WORDS, N> p, Tensor<B, N, K> v) { return einsum<"b i j, b j k -> b i k">(p, v); }
#endif

}  // namespace tessera
