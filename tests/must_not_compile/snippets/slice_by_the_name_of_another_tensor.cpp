// The heads are gone.
// expect: slice<H> of [B, N=196, D=192]: no axis is shown as H [axis-name]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return slice<D>(x, 0_c, 1_c); }
#else
inline auto f(Tensor<B, N, D> x) { return slice<H>(x, 0_c, 1_c); }
#endif

}  // namespace tessera
