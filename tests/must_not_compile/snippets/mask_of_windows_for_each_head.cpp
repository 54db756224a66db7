// The mask of shifted windows is the same for all heads, an axis that it lacks.
// expect: add [B, W=4, H=3, S=49, J=49] + [W=4, S=49, J=49]: axis 2 is H=3 on the left and W=4 on the right (nothing
// is stretched silently: did you mean repeat<w s j -> b w h s j>?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto W = axis<"W", 4>;
inline constexpr auto S = axis<"S", 49>;
inline constexpr auto J = axis<"J", S>;

#ifdef TWIN
inline auto f(Tensor<B, W, H, S, J> scores, Tensor<W, S, J> mask) {
  return scores + repeat<"w s j -> b w h s j">(mask, "b"_is(B), "h"_is(H));
}
#else
inline auto f(Tensor<B, W, H, S, J> scores, Tensor<W, S, J> mask) { return scores + mask; }
#endif

}  // namespace tessera
