// Tokens are declared to be heads without a split.
// expect: conversion of [B, N+1=197, D=192] to the declared [B, H=3, N+1=197, K=64]: it has 3 axes, needs 4 (did you
// mean rearrange<b n (h k) -> b h n k>?) [conversion]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline Tensor<B, H, N + 1_c, K> f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H)); }
#else
inline Tensor<B, H, N + 1_c, K> f(Tensor<B, N + 1_c, D> x) { return x; }
#endif

}  // namespace tessera
