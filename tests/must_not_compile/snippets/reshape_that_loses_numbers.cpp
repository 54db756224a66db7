// The class token is not part of the grid.
// expect: reshape [B, N+1=197, D=192] -> [B, GH=14, GW=14, D=192]: they do not hold equally many numbers, by their
// names (axis 1 is one too long: does it still hold the class token? did you mean slice<1>(x, 1_c, N)?)
// [reshape-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return reshape<B, GH, GW, D>(slice<1>(x, 1_c, N)); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return reshape<B, GH, GW, D>(x); }
#endif

}  // namespace tessera
