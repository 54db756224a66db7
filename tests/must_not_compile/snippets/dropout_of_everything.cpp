// A rate of 1 leaves nothing to divide by.
// expect: dropout at a rate of 1.0: it is the share that is left out, at least 0 and below 1 [dropout-rate]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return dropout<0.1>(x); }
#else
inline auto f(Tensor<B, N, D> x) { return dropout<1.0>(x); }
#endif

}  // namespace tessera
