// The axis says that the class token comes before the distillation token.
// expect: conversion of [B, CLS+DIST+N=198, D=192] to the declared [B, CLS+DIST+N=198, D=192]: axis 1 is
// CLS+DIST+N=198, needs CLS+DIST+N=198 (the same parts in another order: did you mean CLS, DIST, GH*GW in the
// concat?) [conversion]
#include "axes.hpp"

namespace tessera {

inline constexpr auto CLS = axis<"CLS", 1>;
inline constexpr auto DIST = axis<"DIST", 1>;

// did you mean: concat<1>(token, distilled, x)
#ifdef TWIN
inline Tensor<B, CLS + DIST + N, D> f(Tensor<B, CLS, D> token, Tensor<B, DIST, D> distilled, Tensor<B, N, D> x) {
  return concat<1>(token, distilled, x);
}
#else
inline Tensor<B, CLS + DIST + N, D> f(Tensor<B, CLS, D> token, Tensor<B, DIST, D> distilled, Tensor<B, N, D> x) {
  return concat<1>(distilled, token, x);
}
#endif

}  // namespace tessera
