// A transposed convolution has its input's channels first.
// expect: conv_transpose2d of [B, D=192, GH=14, GW=14] by [C=3, D=192, 2, 2]: axis 1 of the map is D=192, needs C=3
// (did you mean ConvTranspose2d<D, D, 2_c>?) [convolution-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, D, GH, GW> x) { return ConvTranspose2d<D, D, 2_c>{}(x); }
#else
inline auto f(Tensor<B, D, GH, GW> x) { return ConvTranspose2d<C, D, 2_c>{}(x); }
#endif

}  // namespace tessera
