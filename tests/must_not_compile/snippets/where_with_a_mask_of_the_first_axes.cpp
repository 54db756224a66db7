// A mask of keys does not stand at the end of the scores.
// expect: where([B, T=197], [B, H=3, K=64, T=197], []): [B, T=197] is not the end of [B, H=3, K=64, T=197]: axis 0 is
// B, needs K=64 (did you mean expand_as, which matches axes by name?) [where-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto T = axis<"T", N + 1_c>;

#ifdef TWIN
inline auto f(Tensor<B, T> keep, Tensor<B, H, K, T> scores) { return mask_scores(scores, expand_as(keep, scores)); }
#else
inline auto f(Tensor<B, T> keep, Tensor<B, H, K, T> scores) { return mask_scores(scores, keep); }
#endif

}  // namespace tessera
