// BEiT's bias is of all tokens, this one of the patches.
// expect: add [B, H=3, T=197, J=197] + [H=3, N=196, N=196]: axis 3 is J=197 on the left and N=196 on the right (one
// short: was the class token forgotten? did you mean [H=3, T=197, J=197] on the right?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto T = axis<"T", N + 1_c>;
inline constexpr auto J = axis<"J", T>;

#ifdef TWIN
inline auto f(Tensor<B, H, T, J> scores, Tensor<H, T, J> bias) { return scores + bias; }
#else
inline auto f(Tensor<B, H, T, J> scores, Tensor<H, N, N> bias) { return scores + bias; }
#endif

}  // namespace tessera
