// Positions of rows and columns, where the tokens are one axis.
// expect: add [B, N=196, D=192] + [GH=14, GW=14, D=192]: axis 1 is N=196 on the left and GW=14 on the right (did you
// mean rearrange<gh gw d -> (gh gw) d>?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> tokens, const Parameter<GH, GW, D>& positions) {
  return tokens + rearrange<"gh gw d -> (gh gw) d">(positions);
}
#else
inline auto f(Tensor<B, N, D> tokens, const Parameter<GH, GW, D>& positions) { return tokens + positions; }
#endif

}  // namespace tessera
