// A twin of another code than the sentence suggests.
// expect: reshape [B, N=196, K=64, H=3] -> [B, N=196, D=192] moves no number, and has the factors of an axis in
// another order: K*H is not H*K; did you mean rearrange<b n k h -> b n (k h)>? [reshape-mixes]
#include "../snippets/axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, K, H> x) { return rearrange<"b n k h -> b n (h k)">(x); }
#else
inline auto f(Tensor<B, N, K, H> x) { return reshape<B, N, D>(x); }
#endif

}  // namespace tessera
