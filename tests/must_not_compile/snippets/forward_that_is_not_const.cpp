// A call of a module changes nothing in it.
// expect: Mlp::forward has to be const, for a call changes nothing in a module: forward(...) const [module-forward]
#include "axes.hpp"

namespace tessera {

struct Mlp : Module {
  Linear<D, M> fc1;
  Linear<M, D> fc2;
  TESSERA_MEMBERS(Mlp, fc1, fc2)
#ifdef TWIN
  Tensor<B, N, D> forward(Tensor<B, N, D> x) const { return fc2(gelu(fc1(x))); }
#else
  Tensor<B, N, D> forward(Tensor<B, N, D> x) { return fc2(gelu(fc1(x))); }
#endif
};

inline auto f(const Mlp& mlp, Tensor<B, N, D> x) { return x + mlp(x); }

}  // namespace tessera
