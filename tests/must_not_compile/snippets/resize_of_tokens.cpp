// What is enlarged has rows and columns, which tokens do not have.
// expect: resize of [B, N=196, D=192] to [448, 448]: it needs a map [B, C, height, width] (did you mean rearrange<b (gh
// gw) d -> b d gh gw> of tokens?) [resize-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return resize<448_c, 448_c>(rearrange<"b (gh gw) d -> b d gh gw">(x, "gh"_is(GH))); }
#else
inline auto f(Tensor<B, N, D> x) { return resize<448_c, 448_c>(x); }
#endif

}  // namespace tessera
