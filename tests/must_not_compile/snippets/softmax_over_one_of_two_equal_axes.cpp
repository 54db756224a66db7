// Attention scores have one axis twice; an alias tells them apart.
// expect: softmax<T> of [B, H=3, T=197, T=197]: axes 2 and 3 are both shown as T; declare the tensor with an alias for
// one of them [axis-name]
#include "axes.hpp"

namespace tessera {

inline constexpr auto T = axis<"T", N + 1_c>;
inline constexpr auto J = axis<"J", T>;

#ifdef TWIN
inline auto f(Tensor<B, H, T, J> scores) { return softmax<J>(scores); }
#else
inline auto f(Tensor<B, H, T, T> scores) { return softmax<T>(scores); }
#endif

}  // namespace tessera
