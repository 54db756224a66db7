// A reduction makes no axis.
// expect: reduce<b n d -> b m> at 12: m stands on the right only; a new axis is made by repeat [pattern-names]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return reduce<"b n d -> b d", "sum">(x); }
#else
inline auto f(Tensor<B, N, D> x) { return reduce<"b n d -> b m", "sum">(x); }
#endif

}  // namespace tessera
