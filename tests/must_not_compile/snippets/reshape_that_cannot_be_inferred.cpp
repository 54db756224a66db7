// 5 does not divide 192.
// expect: reshape [B, N=196, D=192] -> [B, N=196, 5, infer]: infer does not follow: D=192 / 5 is not exact: it leaves
// 2; nearest that work: 4 or 6; or 190 or 195 in place of 192 [dim-division]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return reshape<B, N, H, infer>(x); }
#else
inline auto f(Tensor<B, N, D> x) { return reshape<B, N, 5_c, infer>(x); }
#endif

}  // namespace tessera
