// A position is four groups of numbers.
// expect: sinusoidal_2d [GH*GW=196, 30]: a position is sin and cos of a column and of a row, and 4 does not divide 30;
// nearest that work: 28 or 32 [sinusoidal-width]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f() { return sinusoidal_2d<GH, GW, 32_c>(); }
#else
inline auto f() { return sinusoidal_2d<GH, GW, 30_c>(); }
#endif

}  // namespace tessera
