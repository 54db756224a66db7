// A map is of one tensor, and a cut gives several.
// expect: Projection takes [B, N=196, D=192] and was given 3 tensors [B, N=196, D=192] (did you mean one of them?)
// [module-input]
#include "axes.hpp"

namespace tessera {

struct Projection : Module {
  Linear<D, D> map;
  TESSERA_MEMBERS(Projection, map)

  Tensor<B, N, D> forward(Tensor<B, N, D> x) const { return map(x); }
};

inline auto f(const Projection& proj, Tensor<B, N, 3_c * D> x) {
  const auto parts = chunk<2>(x, 3_c);
// did you mean: proj(parts[2])
#ifdef TWIN
  return proj(parts[2]);
#else
  return proj(parts);
#endif
}

}  // namespace tessera
