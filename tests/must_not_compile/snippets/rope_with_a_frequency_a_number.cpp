// A frequency turns two numbers.
// expect: rope of [B, H=3, N=196, K=64] by learned frequencies needs them for rows and columns, heads and pairs, [2,
// H=3, 32], and was given [2, H=3, K=64] [rope-frequencies]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, H, N, K> q, Tensor<2_c, H, 32_c> w) { return rope_mixed<Rope{}, GH, GW>(q, w); }
#else
inline auto f(Tensor<B, H, N, K> q, Tensor<2_c, H, K> w) { return rope_mixed<Rope{}, GH, GW>(q, w); }
#endif

}  // namespace tessera
