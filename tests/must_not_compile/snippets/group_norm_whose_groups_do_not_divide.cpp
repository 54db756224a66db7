// Seven groups of 192 channels would not be alike.
// expect: group norm of D=192 channels in 7 groups: 3 channels are left over; 6 groups divide them [group-norm-groups]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, D, GH, GW> x) { return GroupNorm<6_c, D>{}(x); }
#else
inline auto f(Tensor<B, D, GH, GW> x) { return GroupNorm<7_c, D>{}(x); }
#endif

}  // namespace tessera
