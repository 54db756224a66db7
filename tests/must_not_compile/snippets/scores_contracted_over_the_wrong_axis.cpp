// The sizes agree by chance (63 patches and a class token, 64 channels); the names do not.
// expect: einsum<b i j, b k j -> b i k> at 12: j is K=64 of [B, TILES+1=64, K=64], but at 5 it is TILES+1=64 of [B,
// TILES+1=64, TILES+1=64] (did you mean b j k for it?) [einsum-letter]
#include "axes.hpp"

namespace tessera {

inline constexpr auto TILES = axis<"TILES", 63>;

#ifdef TWIN
inline auto f(Tensor<B, TILES + 1_c, TILES + 1_c> scores, Tensor<B, TILES + 1_c, K> v) {
  return einsum<"b i j, b j k -> b i k">(scores, v);
}
#else
inline auto f(Tensor<B, TILES + 1_c, TILES + 1_c> scores, Tensor<B, TILES + 1_c, K> v) {
  return einsum<"b i j, b k j -> b i k">(scores, v);
}
#endif

}  // namespace tessera
