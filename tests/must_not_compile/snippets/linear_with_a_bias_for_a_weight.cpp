// The fused bias is given where the fused weight belongs.
// expect: linear needs a weight [Out, In] and was given [3*D=576] [linear-weight]
#include "axes.hpp"

namespace tessera {

inline auto f(Tensor<B, N + 1_c, D> x, const Parameter<3_c * D, D>& weight, const Parameter<3_c * D>& bias) {
#ifdef TWIN
  return linear(x, weight) + bias;
#else
  return linear(x, bias) + weight;
#endif
}

}  // namespace tessera
