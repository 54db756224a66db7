// Momentum is of plain descent: Adam has a decay of its own for it.
// expect: recipe of Tiny: optimizer.momentum is of sgd; adam and adamw have beta1 [recipe]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Tiny : Module {
  Linear<D, D> map;
  TESSERA_MEMBERS(Tiny, map)

#ifdef TWIN
  static constexpr Recipe recipe{.optimizer = {.kind = Optimizer::sgd, .momentum = 0.9}};
#else
  static constexpr Recipe recipe{.optimizer = {.momentum = 0.9}};
#endif

  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x); }
};

inline graph::Graph f() { return trace<Tiny>("tiny"); }

}  // namespace tessera
