// Broadcasting an axis of size 1 has to be said.
// expect: add [B, N=196, D=192] + [B, 1, D=192]: axis 1 is N=196 on the left and 1 on the right (nothing is stretched
// silently: did you mean repeat<b 1 d -> b n d>?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> tokens, Tensor<B, 1_c, D> shift) {
  return tokens + repeat<"b 1 d -> b n d">(shift, "n"_is(N));
}
#else
inline auto f(Tensor<B, N, D> tokens, Tensor<B, 1_c, D> shift) { return tokens + shift; }
#endif

}  // namespace tessera
