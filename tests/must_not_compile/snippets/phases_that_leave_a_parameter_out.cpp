// A metric that neither phase learns stays as a checkpoint has it, which Frozen says.
// expect: phase.keys of Generator: neither phase trains metric.weight and 1 other; what neither trains has to be Frozen
// or a Buffer [phase-keys]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Generator : Module {
  Linear<D, D> map, judge;
#ifdef TWIN
  Frozen<Linear<D, D>> metric;
#else
  Linear<D, D> metric;
#endif
  TESSERA_MEMBERS(Generator, map, judge, metric)

  static constexpr Recipe recipe{.phase = {1, {Keys::within("map"), Keys::within("judge")}}};

  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x); }
  Losses losses(Tensor<B, D> x, Tensor<> factor) const {
    const Tensor<> loss = mean(judge(map(x))) * factor + mean(metric(x));
    return {loss, {{"loss", loss}}};
  }
};

inline graph::Graph f() { return trace<Generator>("generator"); }

}  // namespace tessera
