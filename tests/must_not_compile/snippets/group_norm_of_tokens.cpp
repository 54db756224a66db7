// A group norm is over the channels of a feature map, which come first; those of tokens come last.
// expect: group norm of D=192 channels in 32 groups cannot take [B, N=196, D=192]: axis 1 is N=196, needs D=192 (did
// you mean rearrange<b n d -> b d n>?) [group-norm-axis]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return GroupNorm<32_c, D>{}(rearrange<"b n d -> b d n">(x)); }
#else
inline auto f(Tensor<B, N, D> x) { return GroupNorm<32_c, D>{}(x); }
#endif

}  // namespace tessera
