// There are N+1 tokens; from the second on there are N.
// expect: slice<1> of [B, N+1=197, D=192] takes N=196 positions from 2, and there are N+1=197 [slice-range]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return slice<1>(x, 1_c, N); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return slice<1>(x, 2_c, N); }
#endif

}  // namespace tessera
