// A layer norm over tokens and channels jointly counts the class token.
// expect: layer norm over [N+1=197, D=192] cannot take [B, N=196, D=192]: axis 1 is N=196, needs N+1=197 (one short:
// was the class token forgotten? did you mean concat<1>(token, x)?) [layer-norm-axis]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const LayerNorm<N + 1_c, D>& norm, Tensor<B, N, D> x, Tensor<B, 1_c, D> token) {
  return norm(concat<1>(token, x));
}
#else
inline auto f(const LayerNorm<N + 1_c, D>& norm, Tensor<B, N, D> x) { return norm(x); }
#endif

}  // namespace tessera
