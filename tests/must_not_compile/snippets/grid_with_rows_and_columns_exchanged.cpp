// Patches are counted row by row: N := GH*GW.
// expect: rearrange<b (gw gh) d -> b gh gw d> at 4: (gw gh) is GW*GH, and axis 1 of [B, N=196, D=192] is GH*GW, the
// same factors in another order (did you mean (gh gw)?) [pattern-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return rearrange<"b (gh gw) d -> b gh gw d">(x, "gw"_is(GW)); }
#else
inline auto f(Tensor<B, N, D> x) { return rearrange<"b (gw gh) d -> b gh gw d">(x, "gw"_is(GW)); }
#endif

}  // namespace tessera
