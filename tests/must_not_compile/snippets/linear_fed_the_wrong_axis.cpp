// A linear map from D is given the hidden layer of the MLP.
// expect: linear (D=192 -> D=192) cannot take [B, N+1=197, M=768]: it ends in M=768, needs D=192 (D := H*K; did you
// mean a Linear<M, D> in between?) [linear-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Linear<M, D>& map, Tensor<B, N + 1_c, M> x) { return map(x); }
#else
inline auto f(const Linear<D, D>& map, Tensor<B, N + 1_c, M> x) { return map(x); }
#endif

}  // namespace tessera
