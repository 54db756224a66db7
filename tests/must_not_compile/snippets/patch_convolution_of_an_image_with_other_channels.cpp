// A convolution for coloured images is given a grey one.
// expect: patch convolution (C=3 -> D=192) cannot take [B, 1, IH=224, IW=224]: axis 1 is 1, needs C=3 (nothing is
// stretched silently: did you mean repeat<b 1 ih iw -> b c ih iw>?) [patch-convolution-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const PatchConvolution<C, D, P>& proj, Tensor<B, 1_c, IH, IW> image) {
  return proj(repeat<"b 1 ih iw -> b c ih iw">(image, "c"_is(C)));
}
#else
inline auto f(const PatchConvolution<C, D, P>& proj, Tensor<B, 1_c, IH, IW> image) { return proj(image); }
#endif

}  // namespace tessera
