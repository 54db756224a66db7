// Pooling is over rows and columns, which tokens do not have.
// expect: max_pool<2> of [B, N=196, D=192]: it needs an image [B, C, height, width] of at least one window
// [max-pool-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return max_pool<2>(rearrange<"b (y x) d -> b d y x">(x, "y"_is(GH), "x"_is(GW))); }
#else
inline auto f(Tensor<B, N, D> x) { return max_pool<2>(x); }
#endif

}  // namespace tessera
