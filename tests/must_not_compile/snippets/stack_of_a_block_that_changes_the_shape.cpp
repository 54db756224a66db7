// What leaves a layer enters the next.
// expect: Stack repeats Block, which takes [B, D=192] and returns [B, M=768]: axis 1 is M=768, needs D=192 (D := H*K);
// a layer has to return the shape it takes [stack-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
struct Block : Module {
  Linear<D, D> map;
  TESSERA_MEMBERS(Block, map)
  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x); }
};
#else
struct Block : Module {
  Linear<D, M> map;
  TESSERA_MEMBERS(Block, map)
  Tensor<B, M> forward(Tensor<B, D> x) const { return map(x); }
};
#endif

inline auto f(const Stack<Block, 12>& blocks, Tensor<B, D> x) { return blocks(x); }

}  // namespace tessera
