// Four patches become one: the rows of the coarse grid are an axis of their own.
// expect: GH=14 / 2 is exact in numbers only: 2 is no factor of GH; where that is meant, declare the quotient as an
// axis of its own, Q = axis<Q, 7>, and define GH as the product, the outer one first: 2_c * Q or Q * 2_c [dim-factor]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr auto Q = axis<"Q", 7>;
inline constexpr auto ROWS = axis<"ROWS", Q * 2_c>;
inline auto f(Tensor<B, ROWS, GW, D> x) { return rearrange<"b (q r) w d -> b q w (r d)">(x, "r"_is(2_c)); }
#else
inline constexpr auto Q = GH / 2_c;
inline auto f(Tensor<B, GH, GW, D> x) { return rearrange<"b (q r) w d -> b q w (r d)">(x, "r"_is(2_c), "q"_is(Q)); }
#endif

}  // namespace tessera
