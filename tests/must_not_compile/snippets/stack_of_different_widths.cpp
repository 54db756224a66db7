// All tensors have one shape.
// expect: stack<0> of [B, N=196, D=192] and [B, N=196, K=64]: axis 2 is K=64, needs D=192 (D := H*K) [stack-tensors]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x, Tensor<B, N, D> y) { return stack<0>(x, y); }
#else
inline auto f(Tensor<B, N, D> x, Tensor<B, N, K> y) { return stack<0>(x, y); }
#endif

}  // namespace tessera
