// Joined along the batch, as torch.cat does where it is not told.
// expect: concat<0> of [B, 1, D=192] and [B, N=196, D=192]: axis 1 is 1 and N=196, and all others agree (did you mean
// concat<1>?) [concat-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline Tensor<B, N + 1_c, D> f(Tensor<B, 1_c, D> token, Tensor<B, N, D> x) { return concat<1>(token, x); }
#else
inline Tensor<B, N + 1_c, D> f(Tensor<B, 1_c, D> token, Tensor<B, N, D> x) { return concat<0>(token, x); }
#endif

}  // namespace tessera
