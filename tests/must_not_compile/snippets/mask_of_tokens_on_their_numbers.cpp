// MAE's mask is a number a token, and a loss that was not averaged has one a pixel.
// expect: multiply [B, N=196, C*P*P=768] * [B, N=196]: axis 2 is C*P*P=768 on the left and N=196 on the right
// (nothing is stretched silently: did you mean repeat<b n -> b n c>, or expand_as, or mean<2>(x) or take<2>(x, 0_c)
// of the other?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, C * P * P> loss, Tensor<B, N> mask) { return mean<2>(loss) * mask; }
#else
inline auto f(Tensor<B, N, C * P * P> loss, Tensor<B, N> mask) { return loss * mask; }
#endif

}  // namespace tessera
