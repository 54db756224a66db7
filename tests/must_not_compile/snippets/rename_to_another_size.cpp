// A name cannot change a size.
// expect: rename<2> of [B, N=196, D=192] to K=64: axis 2 is D=192, and the sizes differ [rename-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, K> x) { return rename<2>(x, axis<"J", 64>); }
#else
inline auto f(Tensor<B, N, D> x) { return rename<2>(x, K); }
#endif

}  // namespace tessera
