// The second map of an MLP is declared like the first.
// expect: linear (D=192 -> M=768) cannot take [B, N=196, M=768]: it ends in M=768, needs D=192 (a weight is [Out, In]:
// did you mean M -> D, the transposed weight, or Linear<M, D> before it?) [linear-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Linear<D, M>& fc1, const Linear<M, D>& fc2, Tensor<B, N, D> x) { return fc2(gelu(fc1(x))); }
#else
inline auto f(const Linear<D, M>& fc1, const Linear<D, M>& fc2, Tensor<B, N, D> x) { return fc2(gelu(fc1(x))); }
#endif

}  // namespace tessera
