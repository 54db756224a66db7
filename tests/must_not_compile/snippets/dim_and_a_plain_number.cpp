// A plain number has no value that a type could hold.
// expect: a dim and a plain number: in a shape a number is written with _c, as in N + 1_c [dim-number]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return gelu(x); }
#else
inline auto f(Tensor<B, N + 1, D> x) { return gelu(x); }
#endif

}  // namespace tessera
