// A classifier of all patches is given the class token as well.
// expect: reshape [B, N+1=197, D=192] -> [B, D*N=37632]: they do not hold equally many numbers, by their names (axis
// 1 is one too long: does it still hold the class token? did you mean slice<1>(x, 1_c, N)?) [reshape-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Linear<N * D, C>& head, Tensor<B, N + 1_c, D> x) {
  return head(reshape<B, N * D>(slice<1>(x, 1_c, N)));
}
#else
inline auto f(const Linear<N * D, C>& head, Tensor<B, N + 1_c, D> x) { return head(reshape<B, N * D>(x)); }
#endif

}  // namespace tessera
