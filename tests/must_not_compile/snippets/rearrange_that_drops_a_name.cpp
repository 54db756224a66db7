// An axis cannot get lost in a rearrange.
// expect: rearrange<b n (h k) -> b n k> at 6: h stands on the left only, and its axis would be lost [pattern-names]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H)); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b n k">(x, "h"_is(H)); }
#endif

}  // namespace tessera
