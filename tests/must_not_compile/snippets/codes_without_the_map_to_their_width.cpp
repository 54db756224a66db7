// The encoder gives z channels, and a code has fewer.
// expect: conv2d of [B, Z=256, GH=14, GW=14] by [Z=256, E=64, 1, 1]: axis 1 of the image is Z=256, needs E=64 (did
// you mean Conv2d<Z, Z, 1_c, 1_c>, or Conv2d<Z, E, 1_c, 1_c> before it?) [convolution-input]
#include "axes.hpp"

namespace tessera {

inline constexpr auto Z = axis<"Z", 256>;
inline constexpr auto E = axis<"E", 64>;

#ifdef TWIN
inline auto f(Tensor<B, Z, GH, GW> z, const Conv2d<E, Z, 1_c, 1_c>& back) {
  const Conv2d<Z, E, 1_c, 1_c> to_codes;
  return back(to_codes(z));
}
#else
inline auto f(Tensor<B, Z, GH, GW> z, const Conv2d<E, Z, 1_c, 1_c>& back) { return back(z); }
#endif

}  // namespace tessera
