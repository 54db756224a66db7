// Keys have heads, queries have none.
// expect: einsum<b h i k, b h j k -> b h i j>: operand 0 has 4 letters, and the tensor is [B, N=196, D=192] (did you
// mean rearrange<b n (h k) -> b h n k>?) [pattern-rank]
#include "axes.hpp"

namespace tessera {

inline constexpr auto J = axis<"J", N>;

#ifdef TWIN
inline auto f(Tensor<B, N, D> q, Tensor<B, H, J, K> k) {
  return einsum<"b h i k, b h j k -> b h i j">(rearrange<"b n (h k) -> b h n k">(q, "h"_is(H)), k);
}
#else
inline auto f(Tensor<B, N, D> q, Tensor<B, H, J, K> k) { return einsum<"b h i k, b h j k -> b h i j">(q, k); }
#endif

}  // namespace tessera
