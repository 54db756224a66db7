// Something of one row an image is added to every token: the axis that it lacks has to be said.
// expect: add [B, N=196, D=192] + [B, D=192]: axis 1 is N=196 on the left and B on the right (nothing is stretched
// silently: did you mean repeat<b d -> b n d>, or expand_as, or mean<1>(x) or take<1>(x, 0_c) of the other?)
// [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> tokens, Tensor<B, D> shift) { return tokens + repeat<"b d -> b n d">(shift, "n"_is(N)); }
#else
inline auto f(Tensor<B, N, D> tokens, Tensor<B, D> shift) { return tokens + shift; }
#endif

}  // namespace tessera
