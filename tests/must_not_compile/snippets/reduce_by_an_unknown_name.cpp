// There is no such reduction.
// expect: reduce<b n d -> b d>: there is no reduction average; there are sum, mean, max and min [reduce-name]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return reduce<"b n d -> b d", "mean">(x); }
#else
inline auto f(Tensor<B, N, D> x) { return reduce<"b n d -> b d", "average">(x); }
#endif

}  // namespace tessera
