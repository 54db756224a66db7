// A stride of half a patch gives more patches than the image has tiles.
// expect: conversion of [B, 729, D=192] to the declared [B, N=196, D=192]: axis 1 is 729, needs N=196 (N := GH*GW;
// did you mean to declare [B, 729, D=192]?) [conversion]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline Tensor<B, 729_c, D> f(Tensor<B, C, IH, IW> images) {
  return rearrange<"b d y x -> b (y x) d">(Conv2d<C, D, P, P, Convolution{.stride = 8}>{}(images));
}
#else
inline Tensor<B, N, D> f(Tensor<B, C, IH, IW> images) {
  return rearrange<"b d y x -> b (y x) d">(Conv2d<C, D, P, P, Convolution{.stride = 8}>{}(images));
}
#endif

}  // namespace tessera
