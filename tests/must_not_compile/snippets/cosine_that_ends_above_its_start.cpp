// The rate falls to its floor.
// expect: recipe of Tiny: schedule.floor has to be at least 0 and at most the learning rate [recipe]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Tiny : Module {
  Linear<D, D> map;
  TESSERA_MEMBERS(Tiny, map)

// no suggestion: either of the two numbers can be the wrong one
#ifdef TWIN
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 1e-3},
                                 .schedule = {.kind = Schedule::cosine, .floor = 1e-4}};
#else
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 1e-5},
                                 .schedule = {.kind = Schedule::cosine, .floor = 1e-4}};
#endif

  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x); }
};

inline graph::Graph f() { return trace<Tiny>("tiny"); }

}  // namespace tessera
