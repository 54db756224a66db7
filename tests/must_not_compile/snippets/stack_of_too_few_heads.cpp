// There are three heads.
// expect: stack of H=3 tensors was given 2 [stack-tensors]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, K> a, Tensor<B, N, K> b) { return stack<1>(std::array{a, b, b}, H); }
#else
inline auto f(Tensor<B, N, K> a, Tensor<B, N, K> b) { return stack<1>(std::array{a, b}, H); }
#endif

}  // namespace tessera
