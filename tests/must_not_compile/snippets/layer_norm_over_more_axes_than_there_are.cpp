// One row an image has no axis of tokens.
// expect: layer norm over [N+1=197, D=192] cannot take [D=192]: it has 1 axis, needs at least 2 [layer-norm-axis]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const LayerNorm<D>& norm, Tensor<D> x) { return norm(x); }
#else
inline auto f(const LayerNorm<N + 1_c, D>& norm, Tensor<D> x) { return norm(x); }
#endif

}  // namespace tessera
