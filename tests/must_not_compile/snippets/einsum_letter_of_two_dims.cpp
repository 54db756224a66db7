// The letter k is the width of a head on the left and the tokens on the right.
// expect: einsum<b i k, b k j -> b i j> at 10: k is N=196 of [B, N=196, K=64], but at 5 it is K=64 of [B, N=196, K=64]
// (did you mean b j k for it?) [einsum-letter]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, K> q, Tensor<B, N, K> k) { return einsum<"b i k, b j k -> b i j">(q, k); }
#else
inline auto f(Tensor<B, N, K> q, Tensor<B, N, K> k) { return einsum<"b i k, b k j -> b i j">(q, k); }
#endif

}  // namespace tessera
