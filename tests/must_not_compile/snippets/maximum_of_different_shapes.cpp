// Nothing is stretched silently.
// expect: maximum [B, N=196, D=192] and [B, D=192]: axis 1 is N=196 on the left and B on the right (nothing is
// stretched silently: did you mean repeat<b d -> b n d>, or expand_as, or mean<1>(x) or take<1>(x, 0_c) of the
// other?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x, Tensor<B, D> y) { return maximum(x, expand_as(y, x)); }
#else
inline auto f(Tensor<B, N, D> x, Tensor<B, D> y) { return maximum(x, y); }
#endif

}  // namespace tessera
