// A number a head does not stand at the end of the scores.
// expect: multiply [B, H=3, N=196, J=196] * [H=3]: axis 3 is J=196 on the left and H=3 on the right (nothing is
// stretched silently: did you mean repeat<h -> b h n j>, or expand_as?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto J = axis<"J", N>;

#ifdef TWIN
inline auto f(Tensor<B, H, N, J> scores, const Parameter<H>& scale) { return scores * expand_as(scale, scores); }
#else
inline auto f(Tensor<B, H, N, J> scores, const Parameter<H>& scale) { return scores * scale; }
#endif

}  // namespace tessera
