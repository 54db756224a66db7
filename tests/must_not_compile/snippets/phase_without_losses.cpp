// A phase says itself what it makes small.
// expect: Judge is a phase of a training step and has no losses: Losses losses(Tensor<...> images, Tensor<> factor)
// const [model-loss]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Judge : Module {
  Linear<D, D> map;
  TESSERA_MEMBERS(Judge, map)

  static constexpr Recipe recipe{.phase = {2, {Keys::outside("map"), Keys::within("map")}}};

  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x); }
// no suggestion: what a phase makes small only its author knows
#ifdef TWIN
  Losses losses(Tensor<B, D> x, Tensor<> factor) const {
    const Tensor<> loss = mean(map(x)) * factor;
    return {loss, { { "loss", loss } }};
  }
#else
  Tensor<> loss_of(Tensor<B, D> x, Tensor<> factor) const { return mean(map(x)) * factor; }
#endif
};

inline graph::Graph f() { return trace<Judge>("judge"); }

}  // namespace tessera
