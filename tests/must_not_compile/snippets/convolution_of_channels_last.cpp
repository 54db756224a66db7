// A convolution takes channels second; image decoders and JAX give them last.
// expect: conv2d of [B, IH=224, IW=224, C=3] by [D=192, C=3, 7, 7]: axis 1 of the image is IH=224, needs C=3 (did
// you mean rearrange<b ih iw c -> b c ih iw>?) [convolution-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, IH, IW, C> images) {
  return Conv2d<C, D, 7_c, 7_c>{}(rearrange<"b ih iw c -> b c ih iw">(images));
}
#else
inline auto f(Tensor<B, IH, IW, C> images) { return Conv2d<C, D, 7_c, 7_c>{}(images); }
#endif

}  // namespace tessera
