// Positions of all tokens are added before the class token is joined.
// expect: add [B, N=196, D=192] + [N+1=197, D=192]: axis 1 is N=196 on the left and N+1=197 on the right (one short
// on the left: was the class token forgotten? did you mean concat<1>(token, x) there?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> patches, const Parameter<N + 1_c, D>& positions, Tensor<B, 1_c, D> token) {
  return concat<1>(token, patches) + positions;
}
#else
inline auto f(Tensor<B, N, D> patches, const Parameter<N + 1_c, D>& positions) { return patches + positions; }
#endif

}  // namespace tessera
