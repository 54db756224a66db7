// What is learned belongs to no image: its size cannot depend on how many there are.
// expect: a parameter [B, N=196, D=192] has a size that is known only when the program runs [dim-unknown]
#include "axes.hpp"

namespace tessera {

struct Positions : Module {
#ifdef TWIN
  Parameter<N, D> positions;
#else
  Parameter<B, N, D> positions;
#endif
  TESSERA_MEMBERS(Positions, positions)
  Tensor<B, N, D> forward(Tensor<B, N, D> x) const { return x + positions; }
};

inline void f(Positions& module) { bind(module, ""); }

}  // namespace tessera
