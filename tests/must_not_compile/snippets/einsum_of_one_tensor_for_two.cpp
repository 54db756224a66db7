// The pattern speaks of two tensors.
// expect: einsum<b i k, b j k -> b i j>: the pattern has 2 operands and was given 1 [pattern-rank]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, K> q) { return einsum<"b i k, b j k -> b i j">(q, q); }
#else
inline auto f(Tensor<B, N, K> q) { return einsum<"b i k, b j k -> b i j">(q); }
#endif

}  // namespace tessera
