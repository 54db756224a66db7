// A pattern has names, numbers, brackets and dots.
// expect: rearrange<b n (h*k) -> b h n k> at 7: a character that no pattern has [pattern-syntax]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H)); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h*k) -> b h n k">(x, "h"_is(H)); }
#endif

}  // namespace tessera
