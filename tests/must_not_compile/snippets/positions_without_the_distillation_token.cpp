// DeiT has two tokens before the patches, and the positions are those of ViT.
// expect: add [B, N+2=198, D=192] + [N+1=197, D=192]: axis 1 is N+2=198 on the left and N+1=197 on the right (one
// short: was the class token forgotten? did you mean [N+2=198, D=192] on the right?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 2_c, D> x, Parameter<N + 2_c, D> positions) { return x + positions; }
#else
inline auto f(Tensor<B, N + 2_c, D> x, Parameter<N + 1_c, D> positions) { return x + positions; }
#endif

}  // namespace tessera
