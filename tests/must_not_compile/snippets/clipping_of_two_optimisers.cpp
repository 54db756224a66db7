// Each phase has its own gradients, which are not scaled together.
// expect: recipe of Tiny: phase has neither accumulate, average, labels nor optimizer.clip_norm [recipe]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Tiny : Module {
  Linear<D, D> map;
  TESSERA_MEMBERS(Tiny, map)

// no suggestion: there is nothing to say in its place
#ifdef TWIN
  static constexpr Recipe recipe{.phase = { 1, { Keys::within("map"), Keys::outside("map") } }};
#else
  static constexpr Recipe recipe{.optimizer = {.clip_norm = 1},
                                 .phase = {1, {Keys::within("map"), Keys::outside("map")}}};
#endif

  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x); }
  Losses losses(Tensor<B, D> x, Tensor<> factor) const {
    const Tensor<> loss = mean(map(x)) * factor;
    return {loss, {{"loss", loss}}};
  }
};

inline graph::Graph f() { return trace<Tiny>("tiny"); }

}  // namespace tessera
