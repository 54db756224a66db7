// SwiGLU: one half of what fc1 gives is the gate of the other.
// expect: linear (M=768 -> D=192) cannot take [B, N=196, 2*M=1536]: it ends in 2*M=1536, needs M=768 (2 times as long:
// did you mean one of its parts, chunk<2>(x, 2_c)?) [linear-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Linear<D, 2_c * M>& fc1, const Linear<M, D>& fc2, Tensor<B, N, D> x) {
  const auto halves = chunk<2>(fc1(x), 2_c);
  return fc2(silu(halves[0]) * halves[1]);
}
#else
inline auto f(const Linear<D, 2_c * M>& fc1, const Linear<M, D>& fc2, Tensor<B, N, D> x) { return fc2(silu(fc1(x))); }
#endif

}  // namespace tessera
