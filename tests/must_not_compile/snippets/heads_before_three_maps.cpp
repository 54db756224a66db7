// Queries, keys and values are the outer factor of what the fused map gives: 3*H*K.
// expect: rearrange<b n (h s k) -> s b h n k> at 6: (h s k) is H*3*K, and axis 2 of [B, N=196, 3*H*K=576] is 3*H*K, the
// same factors in another order (did you mean (s h k)?) [pattern-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Linear<D, 3_c * H * K>& qkv, Tensor<B, N, D> x) {
  return rearrange<"b n (s h k) -> s b h n k">(qkv(x), "s"_is(3_c), "h"_is(H));
}
#else
inline auto f(const Linear<D, 3_c * H * K>& qkv, Tensor<B, N, D> x) {
  return rearrange<"b n (h s k) -> s b h n k">(qkv(x), "s"_is(3_c), "h"_is(H));
}
#endif

}  // namespace tessera
