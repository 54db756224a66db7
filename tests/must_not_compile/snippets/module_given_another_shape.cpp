// A module says what it takes.
// expect: Block takes [B, N+1=197, D=192] and was given [B, N=196, D=192]: axis 1 is N=196, needs N+1=197 (one
// short: was the class token forgotten? did you mean concat<1>(token, x)?) [module-input]
#include "axes.hpp"

namespace tessera {

struct Block : Module {
  LayerNorm<D> norm;
  TESSERA_MEMBERS(Block, norm)
  Tensor<B, N + 1_c, D> forward(Tensor<B, N + 1_c, D> x) const { return x + norm(x); }
};

#ifdef TWIN
inline auto f(const Block& block, Tensor<B, N, D> x, Tensor<B, 1_c, D> token) { return block(concat<1>(token, x)); }
#else
inline auto f(const Block& block, Tensor<B, N, D> x) { return block(x); }
#endif

}  // namespace tessera
