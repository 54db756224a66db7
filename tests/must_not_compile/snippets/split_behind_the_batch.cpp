// Where a part begins has to be known.
// expect: split<0> of [B+N, D=192] into [B, N=196]: where a part begins is known only when the program runs
// [dim-unknown]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<N + B, D> x) { return split<0>(x, N, B); }
#else
inline auto f(Tensor<B + N, D> x) { return split<0>(x, B, N); }
#endif

}  // namespace tessera
