// The declared result is a check.
// expect: conversion of [B, M=768] to the declared [B, D=192]: axis 1 is M=768, needs D=192 (D := H*K; did you mean a
// Linear<M, D> in between?) [conversion]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
struct Head : Module {
  Linear<D, M> map;
  Linear<M, D> back;
  TESSERA_MEMBERS(Head, map, back)
  Tensor<B, D> forward(Tensor<B, D> x) const { return back(map(x)); }
};
#else
struct Head : Module {
  Linear<D, M> map;
  TESSERA_MEMBERS(Head, map)
  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x); }
};
#endif

}  // namespace tessera
