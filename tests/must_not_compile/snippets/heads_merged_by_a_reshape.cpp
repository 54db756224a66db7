// Heads that stand before the tokens are not neighbours of their width: a reshape would mix tokens.
// expect: reshape [B, H=3, N=196, K=64] -> [B, N=196, D=192] mixes numbers that do not belong together: H, N, K are
// interleaved into N, D; did you mean rearrange<b h n k -> b n (h k)>? [reshape-mixes]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, H, N, K> x) { return rearrange<"b h n k -> b n (h k)">(x); }
#else
inline auto f(Tensor<B, H, N, K> x) { return reshape<B, N, D>(x); }
#endif

}  // namespace tessera
