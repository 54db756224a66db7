// A size that is given to a name is a dim.
// expect: the name h of a pattern is given a plain number: a number is written with _c, as in 4_c [dim-number]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H)); }
#else
inline auto f(Tensor<B, N, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(3)); }
#endif

}  // namespace tessera
