// Heads stand between the tokens and their width.
// expect: multiply [B, N=196, H=3, K=64] * [N=196, K=64]: axis 2 is H=3 on the left and N=196 on the right (nothing is
// stretched silently: did you mean repeat<n k -> b n h k>, or expand_as?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, H, K> q, const Parameter<N, K>& cosines) { return q * expand_as(cosines, q); }
#else
inline auto f(Tensor<B, N, H, K> q, const Parameter<N, K>& cosines) { return q * cosines; }
#endif

}  // namespace tessera
