// Of the two optimisers of a GAN each has a phase, 1 and 2.
// expect: recipe of Tiny: phase.which has to be 1 or 2 [recipe]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Tiny : Module {
  Linear<D, D> map;
  TESSERA_MEMBERS(Tiny, map)

// no suggestion: either phase can be meant
#ifdef TWIN
  static constexpr Recipe recipe{.phase = { 2, { Keys::within("map"), Keys::outside("map") } }};
#else
  static constexpr Recipe recipe{.phase = {3, {Keys::within("map"), Keys::outside("map")}}};
#endif

  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x); }
  Losses losses(Tensor<B, D> x, Tensor<> factor) const {
    const Tensor<> loss = mean(map(x)) * factor;
    return {loss, {{"loss", loss}}};
  }
};

inline graph::Graph f() { return trace<Tiny>("tiny"); }

}  // namespace tessera
