// A map of half the rows and columns is enlarged before it is added.
// expect: add [B, D=192, 2*GH=28, 2*GW=28] + [B, D=192, GH=14, GW=14]: axis 3 is 2*GW=28 on the left and GW=14 on
// the right (2 times as many rows and columns: did you mean repeat<b c y x -> b c (y 2) (x 2)> of the smaller, or
// Convolution{.stride = 2} for the larger?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, D, GH * 2_c, GW * 2_c> fine, Tensor<B, D, GH, GW> coarse) {
  return fine + repeat<"b c y x -> b c (y 2) (x 2)">(coarse);
}
#else
inline auto f(Tensor<B, D, GH * 2_c, GW * 2_c> fine, Tensor<B, D, GH, GW> coarse) { return fine + coarse; }
#endif

}  // namespace tessera
