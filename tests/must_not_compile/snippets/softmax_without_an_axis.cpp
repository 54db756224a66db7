// Softmax is along an axis, which is not always the last.
// expect: softmax of [B, H=3, N=196, N+1=197]: it has to be said along which axis: softmax<-1>(x) for the last,
// softmax<N>(x) for N [axis-missing]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, H, N, N + 1_c> scores) { return softmax<-1>(scores); }
#else
inline auto f(Tensor<B, H, N, N + 1_c> scores) { return softmax(scores); }
#endif

}  // namespace tessera
