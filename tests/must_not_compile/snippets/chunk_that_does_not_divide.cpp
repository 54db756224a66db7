// 197 tokens are not 3 equal parts.
// expect: chunk<1> of [B, N+1=197, D=192] into H=3 parts: N+1=197 is not, and D=192 is (did you mean chunk<2>?)
// [dim-division]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return chunk<2>(x, H); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return chunk<1>(x, H); }
#endif

}  // namespace tessera
