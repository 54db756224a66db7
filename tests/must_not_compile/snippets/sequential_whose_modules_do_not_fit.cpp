// What one module of a Sequential gives is what the next has to take.
// expect: linear (K=64 -> D=192) cannot take [B, N=196, M=768]: it ends in M=768, needs K=64 (did you mean Linear<M,
// D>, or a Linear<M, K> in between?) [linear-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Sequential<Linear<D, M>, Gelu, Linear<M, D>>& mlp, Tensor<B, N, D> x) { return mlp(x); }
#else
inline auto f(const Sequential<Linear<D, M>, Gelu, Linear<K, D>>& mlp, Tensor<B, N, D> x) { return mlp(x); }
#endif

}  // namespace tessera
