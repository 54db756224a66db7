// One name cannot be two axes of one side.
// expect: rearrange<b n (n k) -> b n k> at 6: this name stands twice on one side [pattern-syntax]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (h k) -> b h n k">(x, "h"_is(H)); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return rearrange<"b n (n k) -> b n k">(x, "n"_is(H)); }
#endif

}  // namespace tessera
