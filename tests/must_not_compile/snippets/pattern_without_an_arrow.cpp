// A pattern has two sides.
// expect: rearrange<b n (h k)> at 10: -> is missing [pattern-syntax]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H)); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k)">(x, "h"_is(H)); }
#endif

}  // namespace tessera
