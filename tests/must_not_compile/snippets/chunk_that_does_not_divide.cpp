// 197 tokens are not 3 equal parts.
// expect: chunk<1> of [B, N+1=197, D=192] into H=3 parts: N+1=197 / H=3 is not exact: it leaves 2; nearest that work:
// H=1 or H=197; or 195 or 198 in place of 197 [dim-division]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return chunk<2>(x, H); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return chunk<1>(x, H); }
#endif

}  // namespace tessera
