// Windows are cut out of a grid, as patches of an image: a reshape mixes rows of several.
// expect: reshape [B, ROWS=14, ROWS=14, D=192] -> [B, W*W=4, S*S=49, D=192] mixes numbers that do not belong
// together: ROWS, ROWS are interleaved into W*W, S*S; did you mean rearrange<b (w s) (x t) d -> b (w x) (s t) d>?
// [reshape-mixes]
#include "axes.hpp"

namespace tessera {

inline constexpr auto W = axis<"W", 2>;
inline constexpr auto S = axis<"S", 7>;
inline constexpr auto ROWS = axis<"ROWS", W * S>;

#ifdef TWIN
inline auto f(Tensor<B, ROWS, ROWS, D> x) {
  return rearrange<"b (w s) (x t) d -> b (w x) (s t) d">(x, "s"_is(S), "t"_is(S));
}
#else
inline auto f(Tensor<B, ROWS, ROWS, D> x) { return reshape<B, W * W, S * S, D>(x); }
#endif

}  // namespace tessera
