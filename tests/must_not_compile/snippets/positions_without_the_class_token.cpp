// Positions for the patches are added to patches and class token.
// expect: add [B, N+1=197, D=192] + [N=196, D=192]: axis 1 is N+1=197 on the left and N=196 on the right (one short:
// was the class token forgotten? did you mean [N+1=197, D=192] on the right?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> tokens, Parameter<N + 1_c, D> positions) { return tokens + positions; }
#else
inline auto f(Tensor<B, N + 1_c, D> tokens, Parameter<N, D> positions) { return tokens + positions; }
#endif

}  // namespace tessera
