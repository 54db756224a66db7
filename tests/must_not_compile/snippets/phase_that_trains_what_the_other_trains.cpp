// Everything outside of the metric is the judge's as well as the generator's.
// expect: phase.keys of Generator: both phases train map.weight and 1 other; each parameter belongs to one [phase-keys]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr Keys of_judge = Keys::within("judge");
#else
inline constexpr Keys of_judge = Keys::outside("metric");
#endif

struct Generator : Module {
  Linear<D, D> map, judge;
  TESSERA_MEMBERS(Generator, map, judge)

  static constexpr Recipe recipe{.phase = {1, {Keys::outside("judge"), of_judge}}};

  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x); }
  Losses losses(Tensor<B, D> x, Tensor<> factor) const {
    const Tensor<> loss = mean(judge(map(x))) * factor;
    return {loss, {{"loss", loss}}};
  }
};

inline graph::Graph f() { return trace<Generator>("generator"); }

}  // namespace tessera
