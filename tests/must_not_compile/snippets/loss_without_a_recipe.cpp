// A model that is trained says how.
// expect: Regression has a loss and no recipe, which says how it is trained: static constexpr Recipe recipe{}
// [model-loss]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Regression : Module {
  Linear<D, C> map;
  TESSERA_MEMBERS(Regression, map)
#ifdef TWIN
  static constexpr Recipe recipe{};
#endif

  Tensor<B, C> forward(Tensor<B, D> x) const { return map(x); }
  Tensor<> loss(Tensor<B, C> outputs, Tensor<B, C> targets) const { return mean(abs(outputs - targets)); }
};

inline auto g() { return trace<Regression>("regression"); }

}  // namespace tessera
