// The kernel has as many channels as the image.
// expect: conv2d of [B, D=192, IH=224, IW=224] by [D=192, C=3, 3, 3]: axis 1 of the image is D=192, needs C=3 (did
// you mean Conv2d<D, D, 3_c, 3_c>, or Conv2d<D, C, 3_c, 3_c> before it?) [convolution-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, D, IH, IW> x) { return Conv2d<D, D, 3_c, 3_c>{}(x); }
#else
inline auto f(Tensor<B, D, IH, IW> x) { return Conv2d<C, D, 3_c, 3_c>{}(x); }
#endif

}  // namespace tessera
