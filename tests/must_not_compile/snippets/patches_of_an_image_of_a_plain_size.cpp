// 224 is no multiple of P before somebody says so.
// expect: rearrange<b c (gh p) (gw q) -> b (gh gw) c p q> at 6: S=224 / P=16 is exact in numbers only: P is no factor
// of S; where that is meant, declare the quotient as an axis of its own, Q = axis<Q, 14>, and define S as the product,
// the outer one first: P * Q or Q * P [dim-factor]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr auto Q = axis<"Q", 14>;
inline constexpr auto S = axis<"S", Q * P>;
inline auto f(const PatchConvolution<C, D, P>& embed, Tensor<B, C, S, S> x) { return embed(x); }
#else
inline constexpr auto S = axis<"S", 224>;
inline auto f(const PatchConvolution<C, D, P>& embed, Tensor<B, C, S, S> x) { return embed(x); }
#endif

}  // namespace tessera
