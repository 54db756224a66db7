// Queries, keys and values are the outer axis of what the fused map gives: QKV*H*K.
// expect: rearrange<b n (h s k) -> s b h n k> at 6: (h s k) is H*QKV*K, and axis 2 of [B, N=196, H*K*QKV=576] is
// QKV*H*K, the same factors in another order (did you mean (s h k)?) [pattern-size]
#include "axes.hpp"

namespace tessera {

inline constexpr auto QKV = axis<"QKV", 3>;

#ifdef TWIN
inline auto f(const Linear<D, QKV * H * K>& qkv, Tensor<B, N, D> x) {
  return rearrange<"b n (s h k) -> s b h n k">(qkv(x), "h"_is(H), "k"_is(K));
}
#else
inline auto f(const Linear<D, QKV * H * K>& qkv, Tensor<B, N, D> x) {
  return rearrange<"b n (h s k) -> s b h n k">(qkv(x), "h"_is(H), "k"_is(K));
}
#endif

}  // namespace tessera
