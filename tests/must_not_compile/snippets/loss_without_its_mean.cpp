// A loss of one's own is one number: what is differentiated is a sum or a mean over the batch as well.
// expect: Regression::loss gives [B]: a loss is one number (did you mean the mean of it?) [model-loss]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Regression : Module {
  Linear<D, C> map;
  TESSERA_MEMBERS(Regression, map)
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.01}};

  Tensor<B, C> forward(Tensor<B, D> x) const { return map(x); }
// did you mean: mean(abs(outputs - targets))
#ifdef TWIN
  Tensor<> loss(Tensor<B, C> outputs, Tensor<B, C> targets) const { return mean(abs(outputs - targets)); }
#else
  Tensor<B> loss(Tensor<B, C> outputs, Tensor<B, C> targets) const { return mean<C>(abs(outputs - targets)); }
#endif
};

inline auto g() { return trace<Regression>("regression"); }

}  // namespace tessera
