// A letter stands once in an operand; the diagonal of a matrix is its product with a mask.
// expect: einsum<b n n -> b n> at 5: this name stands twice on one side [pattern-syntax]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, N> x) { return einsum<"b n m -> b n">(x); }
#else
inline auto f(Tensor<B, N, N> x) { return einsum<"b n n -> b n">(x); }
#endif

}  // namespace tessera
