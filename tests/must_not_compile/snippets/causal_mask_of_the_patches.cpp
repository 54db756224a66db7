// The first token is looked at as well: the mask has a row and a column of it.
// expect: where([N=196, N=196], [B, H=3, T=197, J=197], []): [N=196, N=196] is not the end of [B, H=3, T=197,
// J=197]: axis 1 is N=196, needs J=197 (did you mean [T=197, J=197]?) [where-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto T = axis<"T", N + 1_c>;
inline constexpr auto J = axis<"J", T>;

#ifdef TWIN
inline auto f(Tensor<B, H, T, J> scores) { return mask_scores(scores, causal_mask<T, J>()); }
#else
inline auto f(Tensor<B, H, T, J> scores) { return mask_scores(scores, causal_mask<N, N>()); }
#endif

}  // namespace tessera
