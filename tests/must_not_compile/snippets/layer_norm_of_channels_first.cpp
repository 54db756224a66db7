// A layer norm is over the last axes; the channels of a feature map come first.
// expect: layer norm over [D=192] cannot take [B, D=192, GH=14, GW=14]: axis 3 is GW=14, needs D=192 (it normalises
// the last axes: did you mean rearrange<b d gh gw -> b gh gw d>?) [layer-norm-axis]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const LayerNorm<D>& norm, Tensor<B, D, GH, GW> x) { return norm(rearrange<"b d gh gw -> b gh gw d">(x)); }
#else
inline auto f(const LayerNorm<D>& norm, Tensor<B, D, GH, GW> x) { return norm(x); }
#endif

}  // namespace tessera
