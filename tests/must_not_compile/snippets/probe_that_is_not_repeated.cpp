// The query of attention pooling is one parameter, and each image gets a copy.
// expect: einsum<b q d, b n d -> b q n> at 8: b is B of [B, N=196, D=192], but at 1 it is 1 of [1, 1, D=192] (nothing
// is stretched silently: did you mean a repeat over B?) [einsum-letter]
#include "axes.hpp"

namespace tessera {

// did you mean: repeat<"1 q d -> b q d">(probe, "b"_is(B))
#ifdef TWIN
inline auto f(const Parameter<1_c, 1_c, D>& probe, Tensor<B, N, D> keys) {
  return einsum<"b q d, b n d -> b q n">(repeat<"1 q d -> b q d">(probe, "b"_is(B)), keys);
}
#else
inline auto f(const Parameter<1_c, 1_c, D>& probe, Tensor<B, N, D> keys) {
  return einsum<"b q d, b n d -> b q n">(probe, keys);
}
#endif

}  // namespace tessera
