// A rate is a share.
// expect: drop_path at a rate of -0.25: it is the share that is left out, at least 0 and below 1 [dropout-rate]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return x + drop_path<0.25>(x); }
#else
inline auto f(Tensor<B, N, D> x) { return x + drop_path<-0.25>(x); }
#endif

}  // namespace tessera
