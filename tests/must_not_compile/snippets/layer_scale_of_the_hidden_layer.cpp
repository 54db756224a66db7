// LayerScale multiplies what leaves the MLP, not what is within it.
// expect: multiply [B, N=196, D=192] * [M=768]: axis 2 is D=192 on the left and M=768 on the right (did you mean
// [D=192] on the right?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> y, const Parameter<D>& gamma) { return y * gamma; }
#else
inline auto f(Tensor<B, N, D> y, const Parameter<M>& gamma) { return y * gamma; }
#endif

}  // namespace tessera
