// The heads are the outer axis of the width: D := H*K.
// expect: linear (D=192 -> D=192) cannot take [B, N=196, H*K=192]: it ends in H*K=192, needs D=192 (the same factors in
// another order: K*H is not H*K; did you mean H*K where it was merged?) [linear-input]
#include "axes.hpp"

namespace tessera {

// did you mean: rearrange<"b h n k -> b n (h k)">(x)
#ifdef TWIN
inline auto f(const Linear<D, D>& proj, Tensor<B, H, N, K> x) { return proj(rearrange<"b h n k -> b n (h k)">(x)); }
#else
inline auto f(const Linear<D, D>& proj, Tensor<B, H, N, K> x) { return proj(rearrange<"b h n k -> b n (k h)">(x)); }
#endif

}  // namespace tessera
