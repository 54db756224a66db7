// Axes are named as they are shown.
// expect: softmax<J> of [B, H=3, N=196, K=64]: no axis is shown as J [axis-name]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, H, N, K> x) { return softmax<"K">(x); }
#else
inline auto f(Tensor<B, H, N, K> x) { return softmax<"J">(x); }
#endif

}  // namespace tessera
