// The heads are still apart where tokens are declared.
// expect: conversion of [B, H=3, N+1=197, K=64] to the declared [B, N+1=197, D=192]: it has 4 axes, needs 3 (did you
// mean rearrange<b h n k -> b n (h k)>?) [conversion]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline Tensor<B, N + 1_c, D> f(Tensor<B, H, N + 1_c, K> heads) { return rearrange<"b h n k -> b n (h k)">(heads); }
#else
inline Tensor<B, N + 1_c, D> f(Tensor<B, H, N + 1_c, K> heads) { return heads; }
#endif

}  // namespace tessera
