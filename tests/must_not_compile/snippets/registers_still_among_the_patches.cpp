// A decoder takes patches, and the registers are still among them.
// expect: conversion of [B, N+R=200, D=192] to the declared [B, N=196, D=192]: axis 1 is N+R=200, needs N=196 (too
// long by R=4: is a slice missing? did you mean slice<1>(x, R, N)?) [conversion]
#include "axes.hpp"

namespace tessera {

inline constexpr auto R = axis<"R", 4>;

#ifdef TWIN
inline Tensor<B, N, D> f(Tensor<B, R + N, D> x) { return slice<1>(x, R, N); }
#else
inline Tensor<B, N, D> f(Tensor<B, R + N, D> x) { return x; }
#endif

}  // namespace tessera
