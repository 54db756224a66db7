// The fused bias is given where the fused weight belongs.
// expect: linear of [B, N+1=197, D=192] needs a weight [Out, In] and was given [3*D=576]: it has 1 axis, needs 2 (did
// you mean the weight in place of the bias?) [linear-weight]
#include "axes.hpp"

namespace tessera {

// did you mean: linear(x, weight)
#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x, const Parameter<3_c * D, D>& weight, const Parameter<3_c * D>& bias) {
  return linear(x, weight) + bias;
}
#else
inline auto f(Tensor<B, N + 1_c, D> x, const Parameter<3_c * D, D>& weight, const Parameter<3_c * D>& bias) {
  return linear(x, bias) + weight;
}
#endif

}  // namespace tessera
