// A moving average keeps most of what it was.
// expect: recipe of Tiny: average has to be at least 0 and below 1 [recipe]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Tiny : Module {
  Linear<D, D> map;
  TESSERA_MEMBERS(Tiny, map)

// no suggestion: any decay of that range can be meant
#ifdef TWIN
  static constexpr Recipe recipe{.average = 0.9999};
#else
  static constexpr Recipe recipe{.average = 1.0};
#endif

  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x); }
};

inline graph::Graph f() { return trace<Tiny>("tiny"); }

}  // namespace tessera
