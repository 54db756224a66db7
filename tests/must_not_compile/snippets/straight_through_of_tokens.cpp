// Codes are rows of tokens, and what they replace is a map.
// expect: subtract [B, N=196, D=192] - [B, D=192, GH=14, GW=14]: axis 3 is D=192 on the left and GW=14 on the right
// (did you mean rearrange<b (gh gw) d -> b d gh gw>?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, D, GH, GW> z, Tensor<B, N, D> codes) {
  return z + stop_gradient(rearrange<"b (gh gw) d -> b d gh gw">(codes, "gh"_is(GH), "gw"_is(GW)) - z);
}
#else
inline auto f(Tensor<B, D, GH, GW> z, Tensor<B, N, D> codes) { return z + stop_gradient(codes - z); }
#endif

}  // namespace tessera
