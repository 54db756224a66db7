// Channels come first on one side and last on the other.
// expect: add [B, N=196, D=192] + [B, D=192, N=196]: axis 2 is D=192 on the left and N=196 on the right (did you mean
// rearrange<b d n -> b n d>?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> tokens, Tensor<B, D, N> features) {
  return tokens + rearrange<"b d n -> b n d">(features);
}
#else
inline auto f(Tensor<B, N, D> tokens, Tensor<B, D, N> features) { return tokens + features; }
#endif

}  // namespace tessera
