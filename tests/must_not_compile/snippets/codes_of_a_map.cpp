// A vector quantiser looks at rows of channels, and a map has them second.
// expect: nearest of [B, D=192, GH=14, GW=14] among [V=1024, D=192]: axis 3 of the rows is GW=14, needs D=192 (did
// you mean rearrange<b d gh gw -> b gh gw d>?) [nearest-table]
#include "axes.hpp"

namespace tessera {

inline constexpr auto V = axis<"V", 1024>;

#ifdef TWIN
inline auto f(Tensor<B, D, GH, GW> z, const Parameter<V, D>& codebook) {
  return nearest(rearrange<"b d gh gw -> b gh gw d">(z), codebook);
}
#else
inline auto f(Tensor<B, D, GH, GW> z, const Parameter<V, D>& codebook) { return nearest(z, codebook); }
#endif

}  // namespace tessera
