// Channels are normalised in one group at least.
// expect: group norm of D=192 channels in 0 groups: there is at least one [group-norm-groups]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, D, GH, GW> x) { return GroupNorm<1_c, D>{}(x); }
#else
inline auto f(Tensor<B, D, GH, GW> x) { return GroupNorm<0_c, D>{}(x); }
#endif

}  // namespace tessera
