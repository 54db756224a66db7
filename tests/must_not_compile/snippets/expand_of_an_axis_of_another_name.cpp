// Axes are matched by name.
// expect: expand [K=64] to [B, N=196, D=192]: axis 0 is K=64, and none of the result is [expand-axis]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<N> x, Tensor<B, N, D> y) { return y + expand_as(x, y); }
#else
inline auto f(Tensor<K> x, Tensor<B, N, D> y) { return y + expand_as(x, y); }
#endif

}  // namespace tessera
