// Cross attention takes keys and values of one sequence.
// expect: einsum<b h i j, b h j k -> b h i k> at 14: j is N=196 of [B, H=3, N=196, K=64], but at 7 it is W=77 of [B,
// H=3, N=196, W=77] (did you mean [B, H=3, W=77, K=64]?) [einsum-letter]
#include "axes.hpp"

namespace tessera {

inline constexpr auto W = axis<"W", 77>;

#ifdef TWIN
inline auto f(Tensor<B, H, N, W> p, Tensor<B, H, W, K> v) { return einsum<"b h i j, b h j k -> b h i k">(p, v); }
#else
inline auto f(Tensor<B, H, N, W> p, Tensor<B, H, N, K> v) { return einsum<"b h i j, b h j k -> b h i k">(p, v); }
#endif

}  // namespace tessera
