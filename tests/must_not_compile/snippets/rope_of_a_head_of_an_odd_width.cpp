// Rows and columns each turn pairs of a head.
// expect: rope of a grid of GH=14 x GW=14 patches cannot turn [B, H=3, N=196, 30]: a head has angles of rows and of
// columns, each for two numbers, and 4 does not divide 30; nearest that work: 28 or 32 [rope-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, H, N, 32_c> queries) { return rope<Rope{}, GH, GW>(queries); }
#else
inline auto f(Tensor<B, H, N, 30_c> queries) { return rope<Rope{}, GH, GW>(queries); }
#endif

}  // namespace tessera
