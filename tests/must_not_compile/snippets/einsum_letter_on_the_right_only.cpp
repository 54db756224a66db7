// A result has no letters of its own.
// expect: einsum<b i k, b j k -> b i h> at 21: h stands on the right only [pattern-names]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, K> q, Tensor<B, N, K> k) { return einsum<"b i k, b j k -> b i j">(q, k); }
#else
inline auto f(Tensor<B, N, K> q, Tensor<B, N, K> k) { return einsum<"b i k, b j k -> b i h">(q, k); }
#endif

}  // namespace tessera
