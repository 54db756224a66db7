// The heads are the outer axis of the width: D := H*K.
// expect: rearrange<b n (k h) -> b h n k> at 6: (k h) is K*H, and axis 2 of [B, N=196, D=192] is H*K, the same factors
// in another order (did you mean (h k)?) [pattern-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H)); }
#else
inline auto f(Tensor<B, N, D> x) { return rearrange<"b n (k h) -> b h n k">(x, "h"_is(H)); }
#endif

}  // namespace tessera
