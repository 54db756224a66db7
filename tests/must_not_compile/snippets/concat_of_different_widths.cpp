// Only the joined axis may differ.
// expect: concat<1> of [B, 1, K=64] and [B, N=196, D=192]: axis 2 is K=64 and D=192 (did you mean [B, 1, D=192]?)
// [concat-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, 1_c, D> token, Tensor<B, N, D> tokens) { return concat<1>(token, tokens); }
#else
inline auto f(Tensor<B, 1_c, K> token, Tensor<B, N, D> tokens) { return concat<1>(token, tokens); }
#endif

}  // namespace tessera
