// A convolution gives a map; the blocks take tokens.
// expect: conversion of [B, D=192, GH=14, GW=14] to the declared [B, N=196, D=192]: it has 4 axes, needs 3 (did you
// mean rearrange<b d gh gw -> b (gh gw) d>?) [conversion]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline Tensor<B, N, D> f(Tensor<B, D, GH, GW> map) { return rearrange<"b d gh gw -> b (gh gw) d">(map); }
#else
inline Tensor<B, N, D> f(Tensor<B, D, GH, GW> map) { return map; }
#endif

}  // namespace tessera
