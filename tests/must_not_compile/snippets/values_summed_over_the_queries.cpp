// What a token gets is the sum over the keys, weighted by its row of probabilities.
// expect: einsum<b h i j, b h i k -> b h j k> at 5: i, which is summed over, and j of [B, H=3, T=197, T=197] are both
// T=197; attention sums over the keys, the later one (did you mean b h j i for it? rename says that the first is meant)
// [axis-equal]
#include "axes.hpp"

namespace tessera {

inline constexpr auto T = axis<"T", N + 1_c>;

#ifdef TWIN
inline auto f(Tensor<B, H, T, T> p, Tensor<B, H, T, K> v) { return einsum<"b h j i, b h i k -> b h j k">(p, v); }
#else
inline auto f(Tensor<B, H, T, T> p, Tensor<B, H, T, K> v) { return einsum<"b h i j, b h i k -> b h j k">(p, v); }
#endif

}  // namespace tessera
