// Windows of 5 do not tile 192 channels.
// expect: reduce<b n (d 5) -> b n d> at 6: D=192 / 5 is not exact: it leaves 2; nearest that work: 4 or 6; or 190 or
// 195 in place of 192 [dim-division]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return reduce<"b n (d k) -> b n d", "max">(x, "k"_is(K)); }
#else
inline auto f(Tensor<B, N, D> x) { return reduce<"b n (d 5) -> b n d", "max">(x); }
#endif

}  // namespace tessera
