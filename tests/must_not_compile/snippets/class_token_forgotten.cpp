// Patches without a class token go into a tensor that has one.
// expect: conversion of [B, N=196, D=192] to the declared [B, N+1=197, D=192]: axis 1 is N=196, needs N+1=197 (one
// short: was the class token forgotten? did you mean concat<1>(token, x)?) [conversion]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline Tensor<B, N + 1_c, D> f(Tensor<B, 1_c, D> token, Tensor<B, N, D> patches) { return concat<1>(token, patches); }
#else
inline Tensor<B, N + 1_c, D> f(Tensor<B, 1_c, D>, Tensor<B, N, D> patches) { return patches; }
#endif

}  // namespace tessera
