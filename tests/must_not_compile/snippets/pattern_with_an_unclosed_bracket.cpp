// A malformed pattern is shown with the position of the mistake.
// expect: rearrange<b n (h k -> b h n k> at 5: this bracket is never closed [pattern-syntax]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H)); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k -> b h n k">(x, "h"_is(H)); }
#endif

}  // namespace tessera
