// A linear map takes the last axis, and the channels are not there.
// expect: linear (D=192 -> M=768) cannot take [B, D=192, N=196]: it ends in N=196, needs D=192 (D := H*K; did you mean
// rearrange<b d n -> b n d>?) [linear-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Linear<D, M>& map, Tensor<B, D, N> x) { return map(rearrange<"b d n -> b n d">(x)); }
#else
inline auto f(const Linear<D, M>& map, Tensor<B, D, N> x) { return map(x); }
#endif

}  // namespace tessera
