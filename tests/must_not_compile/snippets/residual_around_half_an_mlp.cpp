// The second map of the MLP is forgotten.
// expect: add [B, N=196, D=192] + [B, N=196, M=768]: axis 2 is D=192 on the left and M=768 on the right (D := H*K; did
// you mean a Linear<M, D> in between?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Linear<D, M>& fc1, const Linear<M, D>& fc2, Tensor<B, N, D> x) { return x + fc2(gelu(fc1(x))); }
#else
inline auto f(const Linear<D, M>& fc1, const Linear<M, D>&, Tensor<B, N, D> x) { return x + gelu(fc1(x)); }
#endif

}  // namespace tessera
