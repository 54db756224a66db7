// x.flatten(2) of a map has the channels first.
// expect: conversion of [B, D=192, N=196] to the declared [B, N=196, D=192]: axis 1 is D=192, needs N=196, axis 2 is
// N=196, needs D=192 (did you mean rearrange<b d n -> b n d>?) [conversion]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline Tensor<B, N, D> f(Tensor<B, D, GH, GW> map) { return rearrange<"b d n -> b n d">(reshape<B, D, N>(map)); }
#else
inline Tensor<B, N, D> f(Tensor<B, D, GH, GW> map) { return reshape<B, D, N>(map); }
#endif

}  // namespace tessera
