// What the decoder joins has to be as large as the map of the encoder: it is enlarged first.
// expect: concat<1> of [B, D=192, 2*GH=28, 2*GW=28] and [B, D=192, GH=14, GW=14]: axis 2 is 2*GH=28 and GH=14 (2
// times as many rows and columns: did you mean repeat<b c y x -> b c (y 2) (x 2)> of the smaller, or
// Convolution{.stride = 2} for the larger?) [concat-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, D, 2_c * GH, 2_c * GW> skip, Tensor<B, D, GH, GW> x) {
  return concat<1>(skip, repeat<"b c y x -> b c (y 2) (x 2)">(x));
}
#else
inline auto f(Tensor<B, D, 2_c * GH, 2_c * GW> skip, Tensor<B, D, GH, GW> x) { return concat<1>(skip, x); }
#endif

}  // namespace tessera
