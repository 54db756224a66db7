// The loss is of what forward gives.
// expect: Regression::loss takes outputs [B, D=192], and forward gives [B, C=3]: axis 1 is C=3, needs D=192 (D := H*K)
// [model-loss]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Regression : Module {
  Linear<D, C> map;
  TESSERA_MEMBERS(Regression, map)
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.01}};

  Tensor<B, C> forward(Tensor<B, D> x) const { return map(x); }
#ifdef TWIN
  Tensor<> loss(Tensor<B, C> outputs, Tensor<B, C> targets) const { return mean(abs(outputs - targets)); }
#else
  Tensor<> loss(Tensor<B, D> outputs, Tensor<B, D> targets) const { return mean(abs(outputs - targets)); }
#endif
};

inline auto g() { return trace<Regression>("regression"); }

}  // namespace tessera
