// Tokens have no rows and columns.
// expect: conv_transpose2d of [B, N=196, D=192] by [D=192, D=192, 2, 2]: it needs a map [B, C, height, width] (did you
// mean rearrange<b (gh gw) d -> b d gh gw> of tokens?) [convolution-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) {
  return ConvTranspose2d<D, D, 2_c>{}(rearrange<"b (gh gw) d -> b d gh gw">(x, "gh"_is(GH)));
}
#else
inline auto f(Tensor<B, N, D> x) { return ConvTranspose2d<D, D, 2_c>{}(x); }
#endif

}  // namespace tessera
