// The class token is still there where only patches are declared.
// expect: conversion of [B, N+1=197, D=192] to the declared [B, N=196, D=192]: axis 1 is N+1=197, needs N=196 (one
// too many: does it still hold the class token? did you mean slice<1>(x, 1_c, N)?) [conversion]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline Tensor<B, N, D> f(Tensor<B, N + 1_c, D> x) { return slice<1>(x, 1_c, N); }
#else
inline Tensor<B, N, D> f(Tensor<B, N + 1_c, D> x) { return x; }
#endif

}  // namespace tessera
