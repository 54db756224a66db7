// The heads are the outer axis of the width: D := H*K.
// expect: reshape [B, N=196, K=64, H=3] -> [B, N=196, D=192] moves no number, and has the factors of an axis in
// another order: K*H is not H*K; did you mean rearrange<b n k h -> b n (h k)>? [reshape-mixes]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, K, H> x) { return rearrange<"b n k h -> b n (h k)">(x); }
#else
inline auto f(Tensor<B, N, K, H> x) { return reshape<B, N, D>(x); }
#endif

}  // namespace tessera
