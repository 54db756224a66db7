// Both choices have the shape of the condition.
// expect: where([N=196, D=192], [N=196, K=64], []): [N=196, K=64] is not the end of [N=196, D=192]: axis 1 is K=64,
// needs D=192 (D := H*K) [where-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<N, K> condition, Tensor<N, K> x) { return where(condition, x, 0.0); }
#else
inline auto f(Tensor<N, D> condition, Tensor<N, K> x) { return where(condition, x, 0.0); }
#endif

}  // namespace tessera
