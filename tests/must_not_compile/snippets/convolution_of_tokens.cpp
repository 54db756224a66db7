// Tokens have no rows and columns.
// expect: conv2d of [B, N=196, D=192] by [D=192, D=192, 3, 3]: it needs an image [B, C, height, width] and a weight [D,
// C, height, width] (did you mean rearrange<b (gh gw) d -> b d gh gw> of tokens?) [convolution-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) {
  return Conv2d<D, D, 3_c, 3_c>{}(rearrange<"b (gh gw) d -> b d gh gw">(x, "gh"_is(GH)));
}
#else
inline auto f(Tensor<B, N, D> x) { return Conv2d<D, D, 3_c, 3_c>{}(x); }
#endif

}  // namespace tessera
