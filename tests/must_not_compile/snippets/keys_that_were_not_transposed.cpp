// A product of matrices needs the keys transposed; letters say which axes belong together.
// expect: einsum<b h i k, b h k j -> b h i j> at 14: k is N=196 of [B, H=3, N=196, K=64], but at 7 it is K=64 of [B,
// H=3, N=196, K=64] (did you mean b h j k for it?) [einsum-letter]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, H, N, K> q, Tensor<B, H, N, K> k) { return einsum<"b h i k, b h j k -> b h i j">(q, k); }
#else
inline auto f(Tensor<B, H, N, K> q, Tensor<B, H, N, K> k) { return einsum<"b h i k, b h k j -> b h i j">(q, k); }
#endif

}  // namespace tessera
