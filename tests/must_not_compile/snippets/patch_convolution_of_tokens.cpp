// Patches are cut out of an image, not out of tokens.
// expect: patch convolution (C=3 -> D=192) cannot take [B, N+1=197, D=192]: it needs the axes batch, channels, height
// and width [patch-convolution-input]
#include "axes.hpp"

namespace tessera {

// no suggestion: the image is not there; which of the two calls is one too many, no shape says
#ifdef TWIN
inline auto f(const PatchConvolution<C, D, P>& proj, Tensor<B, C, IH, IW> x) { return proj(x); }
#else
inline auto f(const PatchConvolution<C, D, P>& proj, Tensor<B, N + 1_c, D> x) { return proj(x); }
#endif

}  // namespace tessera
