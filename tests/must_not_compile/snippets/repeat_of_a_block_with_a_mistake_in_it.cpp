// The mistake is within the block, and is the only error.
// expect: linear (M=768 -> D=192) cannot take [B, N+1=197, D=192]: it ends in D=192, needs M=768 (a weight is [Out,
// In]: did you mean D -> M, the transposed weight, or Linear<D, M> before it?) [linear-input]
#include "axes.hpp"

namespace tessera {

struct Mlp {
  Linear<D, M> fc1;
  Linear<M, D> fc2;
  Repeat<6> times;

  auto forward(Tensor<B, N + 1_c, D> x) const {
#ifdef TWIN
    return times(x, [this](const auto& z) { return z + fc2(gelu(fc1(z))); });
#else
    return times(x, [this](const auto& z) { return z + fc2(gelu(z)); });
#endif
  }
};

}  // namespace tessera
