// Windows are put back into the grid before the residual sum.
// expect: add [B, ROWS=14, COLUMNS=14, D=192] + [B, V*W=4, S*T=49, D=192]: axis 2 is COLUMNS=14 on the left and
// S*T=49 on the right (did you mean rearrange<b (w v) (s t) d -> b (w s) (v t) d>?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto W = axis<"W", 2>;
inline constexpr auto V = axis<"V", 2>;
inline constexpr auto S = axis<"S", 7>;
inline constexpr auto T = axis<"T", 7>;
inline constexpr auto ROWS = axis<"ROWS", W * S>;
inline constexpr auto COLUMNS = axis<"COLUMNS", V * T>;

#ifdef TWIN
inline auto f(Tensor<B, ROWS, COLUMNS, D> x, Tensor<B, W * V, S * T, D> windows) {
  return x + rearrange<"b (w v) (s t) d -> b (w s) (v t) d">(windows, "w"_is(W), "s"_is(S));
}
#else
inline auto f(Tensor<B, ROWS, COLUMNS, D> x, Tensor<B, W * V, S * T, D> windows) { return x + windows; }
#endif

}  // namespace tessera
