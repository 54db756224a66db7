// Two vectors of an image are joined along their width.
// expect: concat<1> of [B, D=192] and [B, N=196, D=192]: they have 2 and 3 axes (nothing is stretched silently: did
// you mean repeat<b d -> b 1 d>, or expand_as, or mean<1>(x) or take<1>(x, 0_c) of the other?) [concat-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return concat<1>(take<1>(x, 0_c), mean<1>(slice<1>(x, 1_c, N))); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return concat<1>(take<1>(x, 0_c), slice<1>(x, 1_c, N)); }
#endif

}  // namespace tessera
