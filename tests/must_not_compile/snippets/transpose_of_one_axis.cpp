// Two axes change places.
// expect: transpose<1, -2> of [B, N=196, D=192]: axis 1 is given twice [axis-twice]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return transpose<1, -1>(x); }
#else
inline auto f(Tensor<B, N, D> x) { return transpose<1, -2>(x); }
#endif

}  // namespace tessera
