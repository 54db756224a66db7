// A stride goes on.
// expect: conv2d of [B, C=3, IH=224, IW=224] by [D=192, C=3, P=16, P=16]: stride and dilation are at least 1, padding
// at least 0 [convolution-options]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, C, IH, IW> x) { return Conv2d<C, D, P, P, Convolution{.stride = 16}>{}(x); }
#else
inline auto f(Tensor<B, C, IH, IW> x) { return Conv2d<C, D, P, P, Convolution{.stride = 0}>{}(x); }
#endif

}  // namespace tessera
