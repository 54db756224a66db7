// A size is given for a name that the pattern does not have.
// expect: rearrange<b n (h k) -> b h n k>: heads is given, and the pattern has no such name [pattern-binding]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H)); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "heads"_is(H)); }
#endif

}  // namespace tessera
