// A weight is [Out, In], as PyTorch stores it.
// expect: linear (M=768 -> D=192) cannot take [B, N+1=197, D=192]: it ends in D=192, needs M=768 (a weight is [Out,
// In]: did you mean D -> M, the transposed weight, or Linear<D, M> before it?) [linear-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x, const Parameter<M, D>& weight) { return linear(x, weight); }
#else
inline auto f(Tensor<B, N + 1_c, D> x, const Parameter<D, M>& weight) { return linear(x, weight); }
#endif

}  // namespace tessera
