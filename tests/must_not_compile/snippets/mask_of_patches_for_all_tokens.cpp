// A mask between patches is added to scores that have the class token as well.
// expect: add [B, H=3, T=197, J=197] + [N=196, N=196]: axis 3 is J=197 on the left and N=196 on the right (one
// short: was the class token forgotten? did you mean [T=197, J=197] on the right?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto T = axis<"T", N + 1_c>;
inline constexpr auto J = axis<"J", T>;

#ifdef TWIN
inline auto f(Tensor<B, H, T, J> scores, const Parameter<T, J>& mask) { return scores + mask; }
#else
inline auto f(Tensor<B, H, T, J> scores, const Parameter<N, N>& mask) { return scores + mask; }
#endif

}  // namespace tessera
