// An image decoder gives channels last; a convolution takes them second.
// expect: patch convolution (C=3 -> D=192) cannot take [B, IH=224, IW=224, C=3]: axis 1 is IH=224, needs C=3 (did you
// mean rearrange<b ih iw c -> b c ih iw>?) [patch-convolution-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const PatchConvolution<C, D, P>& proj, Tensor<B, IH, IW, C> images) {
  return proj(rearrange<"b ih iw c -> b c ih iw">(images));
}
#else
inline auto f(const PatchConvolution<C, D, P>& proj, Tensor<B, IH, IW, C> images) { return proj(images); }
#endif

}  // namespace tessera
