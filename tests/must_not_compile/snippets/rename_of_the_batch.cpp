// The size of the batch is not known, so that it cannot be another axis.
// expect: rename<0> of [B, N=196, K=64] to K=64: axis 0 is B, and the sizes cannot be proved equal: one is known only
// when the program runs [rename-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, K> x) { return rename<2>(x, axis<"J", 64>); }
#else
inline auto f(Tensor<B, N, K> x) { return rename<0>(x, K); }
#endif

}  // namespace tessera
