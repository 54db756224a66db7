// The heads have to be merged before the output projection.
// expect: linear (D=192 -> D=192) cannot take [B, H=3, N+1=197, K=64]: it ends in K=64, needs D=192 (D := H*K; did you
// mean rearrange<b h n k -> b n (h k)>?) [linear-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Linear<D, D>& proj, Tensor<B, H, N + 1_c, K> x) {
  return proj(rearrange<"b h n k -> b n (h k)">(x));
}
#else
inline auto f(const Linear<D, D>& proj, Tensor<B, H, N + 1_c, K> x) { return proj(x); }
#endif

}  // namespace tessera
