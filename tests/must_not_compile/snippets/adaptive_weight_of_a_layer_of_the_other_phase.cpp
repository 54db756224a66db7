// The weight of the adversarial loss is made of gradients of the generator's last layer.
// expect: judge.weight is not trained by Generator, which is phase 1 of its step [phase-keys]
#include "axes.hpp"
#include "dsl/trace.hpp"
#include "models/vqgan_loss.hpp"

namespace tessera {

struct Generator : Module {
  Linear<D, D> map, judge;
  TESSERA_MEMBERS(Generator, map, judge)

  static constexpr Recipe recipe{.phase = {1, {Keys::outside("judge"), Keys::within("judge")}}};

  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x); }
  Losses losses(Tensor<B, D> x, Tensor<> factor) const {
    const Tensor<> nll = mean(abs(map(x) - x)), g = -mean(judge(map(x)));
#ifdef TWIN
    const auto weight = models::adaptive_weight(nll, g, phase_parameter<"map.weight">(*this));
#else
    const auto weight = models::adaptive_weight(nll, g, phase_parameter<"judge.weight">(*this));
#endif
    return {nll + g * weight * factor, {{"nll", nll}}};
  }
};

inline graph::Graph f() { return trace<Generator>("generator"); }

}  // namespace tessera
