// The pattern names four axes, the tensor has three.
// expect: rearrange<b h n k -> b n (h k)>: its left side has 4 axes, and the tensor is [B, N+1=197, D=192]
// [pattern-rank]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, H, N + 1_c, K> x) { return rearrange<"b h n k -> b n (h k)">(x); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b h n k -> b n (h k)">(x); }
#endif

}  // namespace tessera
