// The class token is one parameter, and each image gets a copy.
// expect: concat<1> of [1, D=192] and [B, N=196, D=192]: they have 2 and 3 axes (nothing is stretched silently: did you
// mean repeat<1 d -> b 1 d>?) [concat-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Parameter<1_c, D>& token, Tensor<B, N, D> tokens) {
  return concat<1>(repeat<"1 d -> b 1 d">(token, "b"_is(B)), tokens);
}
#else
inline auto f(const Parameter<1_c, D>& token, Tensor<B, N, D> tokens) { return concat<1>(token, tokens); }
#endif

}  // namespace tessera
