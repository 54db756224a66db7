// Grouped queries: twelve heads of queries share four of keys.
// expect: einsum<b h i k, b h j k -> b h i j> at 12: h is G=4 of [B, G=4, J=196, K=64], but at 3 it is Q=12 of [B,
// Q=12, N=196, K=64] (3 times as many: did you mean repeat<b g j k -> b (g 3) j k> of it?) [einsum-letter]
#include "axes.hpp"

namespace tessera {

inline constexpr auto J = axis<"J", N>;
inline constexpr auto G = axis<"G", 4>;
inline constexpr auto Q = axis<"Q", G * 3_c>;

#ifdef TWIN
inline auto f(Tensor<B, Q, N, K> q, Tensor<B, G, J, K> k) {
  return einsum<"b h i k, b h j k -> b h i j">(q, repeat<"b g j k -> b (g 3) j k">(k));
}
#else
inline auto f(Tensor<B, Q, N, K> q, Tensor<B, G, J, K> k) { return einsum<"b h i k, b h j k -> b h i j">(q, k); }
#endif

}  // namespace tessera
