// The keys are the patches, the values are all tokens.
// expect: einsum<b h i j, b h j k -> b h i k> at 14: j is N+1=197 of [B, H=3, N+1=197, K=64], but at 7 it is N=196
// of [B, H=3, N+1=197, N=196] (one too many: does it still hold the class token? did you mean slice<2>(x, 1_c, N)?)
// [einsum-letter]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, H, N + 1_c, N> p, Tensor<B, H, N + 1_c, K> v) {
  return einsum<"b h i j, b h j k -> b h i k">(p, slice<2>(v, 1_c, N));
}
#else
inline auto f(Tensor<B, H, N + 1_c, N> p, Tensor<B, H, N + 1_c, K> v) {
  return einsum<"b h i j, b h j k -> b h i k">(p, v);
}
#endif

}  // namespace tessera
