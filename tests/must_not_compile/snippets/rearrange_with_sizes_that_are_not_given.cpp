// One of two names in a bracket needs its size.
// expect: rearrange<b n (h k) -> b h n k> at 6: the sizes of h and k are not given: give one of them with _is
// [pattern-unknown]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H)); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x); }
#endif

}  // namespace tessera
