// The axis of tokens is not made of heads.
// expect: rearrange<b (h k) d -> b h k d> at 4: N+1=197 / H=3 is not exact: it leaves 2; nearest that work: H=1 or
// H=197; or 195 or 198 in place of 197 [dim-division]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H)); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b (h k) d -> b h k d">(x, "h"_is(H)); }
#endif

}  // namespace tessera
