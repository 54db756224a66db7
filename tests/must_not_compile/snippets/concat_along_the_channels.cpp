// The class token is joined along the tokens.
// expect: concat<2> of [B, 1, D=192] and [B, N=196, D=192]: axis 1 is 1 and N=196, and all others agree (did you mean
// concat<1>?) [concat-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, 1_c, D> token, Tensor<B, N, D> tokens) { return concat<1>(token, tokens); }
#else
inline auto f(Tensor<B, 1_c, D> token, Tensor<B, N, D> tokens) { return concat<2>(token, tokens); }
#endif

}  // namespace tessera
