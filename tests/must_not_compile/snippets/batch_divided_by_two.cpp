// Half a batch would need the size of the batch to be even, which nobody knows.
// expect: chunk<0> of [B, N=196, D=192] into 2 parts: B / 2 cannot be proved exact: a size is known only when the
// program runs; divide an axis of known size [dim-division]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return chunk<2>(x, H); }
#else
inline auto f(Tensor<B, N, D> x) { return chunk<0>(x, 2_c); }
#endif

}  // namespace tessera
