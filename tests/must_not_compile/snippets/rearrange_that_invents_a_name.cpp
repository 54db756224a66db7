// A rearrange makes no new axes.
// expect: rearrange<b n d -> b n h d> at 14: h stands on the right only; a new axis is made by repeat [pattern-names]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n d -> n b d">(x); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n d -> b n h d">(x); }
#endif

}  // namespace tessera
