// The classifier is of the class token, not of every token.
// expect: conversion of [B, N+1=197, CLASSES=1000] to the declared [B, CLASSES=1000]: it has 3 axes, needs 2 (N+1=197
// is one axis too many: did you mean take<1>(x, 0_c), a position of it, or mean<1>(x)?) [conversion]
#include "axes.hpp"

namespace tessera {

inline constexpr auto CLASSES = axis<"CLASSES", 1000>;

#ifdef TWIN
inline Tensor<B, CLASSES> f(const Linear<D, CLASSES>& head, Tensor<B, N + 1_c, D> x) { return head(take<1>(x, 0_c)); }
#else
inline Tensor<B, CLASSES> f(const Linear<D, CLASSES>& head, Tensor<B, N + 1_c, D> x) { return head(x); }
#endif

}  // namespace tessera
