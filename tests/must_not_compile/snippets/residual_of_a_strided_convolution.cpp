// A residual block of stride 2 maps its shortcut as well.
// expect: add [B, D=192, IH=224, IW=224] + [B, D=192, 112, 112]: axis 3 is IW=224 on the left and 112 on the right
// (2 times as many rows and columns: did you mean repeat<b c y x -> b c (y 2) (x 2)> of the smaller, or
// Convolution{.stride = 2} for the larger?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, D, IH, IW> x) {
  const auto shortcut = Conv2d<D, D, 1_c, 1_c, Convolution{.stride = 2}>{}(x);
  return shortcut + Conv2d<D, D, 3_c, 3_c, Convolution{.stride = 2, .padding = 1}>{}(x);
}
#else
inline auto f(Tensor<B, D, IH, IW> x) {
  return x + Conv2d<D, D, 3_c, 3_c, Convolution{.stride = 2, .padding = 1}>{}(x);
}
#endif

}  // namespace tessera
