// A mean of each channel does not stand at the end of an image.
// expect: subtract [B, C=3, IH=224, IW=224] - [C=3]: axis 3 is IW=224 on the left and C=3 on the right (nothing is
// stretched silently: did you mean repeat<c -> b c ih iw>, or expand_as?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, C, IH, IW> images, const Parameter<C>& mean) { return images - expand_as(mean, images); }
#else
inline auto f(Tensor<B, C, IH, IW> images, const Parameter<C>& mean) { return images - mean; }
#endif

}  // namespace tessera
