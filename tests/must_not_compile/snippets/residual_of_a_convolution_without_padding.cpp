// A convolution of 3 x 3 without padding loses a pixel on each side.
// expect: add [B, D=192, GH=14, GW=14] + [B, D=192, 12, 12]: axis 3 is GW=14 on the left and 12 on the right (2 rows
// and columns short: did you mean Convolution{.padding = 1}?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, D, GH, GW> x) { return x + Conv2d<D, D, 3_c, 3_c, Convolution{.padding = 1}>{}(x); }
#else
inline auto f(Tensor<B, D, GH, GW> x) { return x + Conv2d<D, D, 3_c, 3_c>{}(x); }
#endif

}  // namespace tessera
