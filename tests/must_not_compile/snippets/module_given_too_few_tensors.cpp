// A decoder takes what it attends to as well.
// expect: Cross takes 2 tensors ([B, N=196, D=192], [B, M=768, D=192]) and was given 1 ([B, N=196, D=192])
// [module-input]
#include "axes.hpp"

namespace tessera {

struct Cross : Module {
  Linear<D, D> query, key;
  TESSERA_MEMBERS(Cross, query, key)
  Tensor<B, N, M> forward(Tensor<B, N, D> x, Tensor<B, M, D> memory) const {
    return einsum<"b n d, b m d -> b n m">(query(x), key(memory));
  }
};

#ifdef TWIN
inline auto f(const Cross& cross, Tensor<B, N, D> x, Tensor<B, M, D> memory) { return cross(x, memory); }
#else
inline auto f(const Cross& cross, Tensor<B, N, D> x, Tensor<B, M, D>) { return cross(x); }
#endif

}  // namespace tessera
