// Axes are counted from 0.
// expect: softmax over axis 3 of [B, N=196, D=192]: it has axes 0 to 2 [axis-index]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return softmax<2>(x); }
#else
inline auto f(Tensor<B, N, D> x) { return softmax<3>(x); }
#endif

}  // namespace tessera
