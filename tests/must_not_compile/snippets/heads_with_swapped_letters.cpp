// Queries and keys are split into heads in two orders.
// expect: einsum<b h i k, b h j k -> b h i j> at 12: h is N=196 of [B, N=196, H=3, K=64], but at 3 it is H=3 of [B,
// H=3, N=196, K=64] (did you mean b j h k for it?) [einsum-letter]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, H, N, K> q, Tensor<B, N, H, K> k) { return einsum<"b h i k, b j h k -> b h i j">(q, k); }
#else
inline auto f(Tensor<B, H, N, K> q, Tensor<B, N, H, K> k) { return einsum<"b h i k, b h j k -> b h i j">(q, k); }
#endif

}  // namespace tessera
