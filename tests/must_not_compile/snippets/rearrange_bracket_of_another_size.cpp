// The names of the bracket have to make up the axis.
// expect: rearrange<b n (h k) -> b h n k> at 6: (h k) is H*H=9, and axis 2 of [B, N+1=197, D=192] is D=192
// [pattern-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H), "k"_is(K)); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H), "k"_is(H)); }
#endif

}  // namespace tessera
