// One equation has one unknown.
// expect: reshape [B, N=196, D=192] -> [infer, H=3, infer]: only one axis can follow from the others [reshape-infer]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return reshape<B, N, H, infer>(x); }
#else
inline auto f(Tensor<B, N, D> x) { return reshape<infer, H, infer>(x); }
#endif

}  // namespace tessera
