// MLP-Mixer mixes tokens, which have to stand last for that.
// expect: linear (N=196 -> M=768) cannot take [B, N=196, D=192]: it ends in D=192, needs N=196 (N := GH*GW; did you
// mean rearrange<b n d -> b d n>?) [linear-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Linear<N, M>& fc1, Tensor<B, N, D> x) { return fc1(rearrange<"b n d -> b d n">(x)); }
#else
inline auto f(const Linear<N, M>& fc1, Tensor<B, N, D> x) { return fc1(x); }
#endif

}  // namespace tessera
