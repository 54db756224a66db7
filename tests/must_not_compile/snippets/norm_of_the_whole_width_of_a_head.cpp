// A norm of queries is over the width of a head.
// expect: layer norm over [D=192] cannot take [B, H=3, N=196, K=64]: axis 3 is K=64, needs D=192 (it normalises the
// last axes: did you mean LayerNorm<K>?) [layer-norm-axis]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const LayerNorm<K>& q_norm, Tensor<B, H, N, K> q) { return q_norm(q); }
#else
inline auto f(const LayerNorm<D>& q_norm, Tensor<B, H, N, K> q) { return q_norm(q); }
#endif

}  // namespace tessera
