// The axis says that the class token comes first.
// expect: conversion of [B, CLS+N=197, D=192] to the declared [B, T=197, D=192]: axis 1 is CLS+N=197, needs T=197 (the
// same parts in another order: did you mean CLS, GH*GW in the concat?) [conversion]
#include "axes.hpp"

namespace tessera {

inline constexpr auto CLS = axis<"CLS", 1>;
inline constexpr auto T = axis<"T", CLS + N>;

// did you mean: concat<1>(token, tokens)
#ifdef TWIN
inline Tensor<B, T, D> f(Tensor<B, CLS, D> token, Tensor<B, N, D> tokens) { return concat<1>(token, tokens); }
#else
inline Tensor<B, T, D> f(Tensor<B, CLS, D> token, Tensor<B, N, D> tokens) { return concat<1>(tokens, token); }
#endif

}  // namespace tessera
