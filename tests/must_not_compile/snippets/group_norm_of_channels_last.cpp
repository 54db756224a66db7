// A group norm takes channels second.
// expect: group norm of D=192 channels in 32 groups cannot take [B, GH=14, GW=14, D=192]: axis 1 is GH=14, needs
// D=192 (did you mean rearrange<b gh gw d -> b d gh gw>?) [group-norm-axis]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, GH, GW, D> x) { return GroupNorm<32_c, D>{}(rearrange<"b gh gw d -> b d gh gw">(x)); }
#else
inline auto f(Tensor<B, GH, GW, D> x) { return GroupNorm<32_c, D>{}(x); }
#endif

}  // namespace tessera
