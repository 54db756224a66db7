// A mask of keys could as well be one of queries.
// expect: expand [B, T=197] to [B, H=3, T=197, T=197]: axis 1 is T=197, and axes 2 and 3 of the result both are;
// declare it with an alias for one of them [expand-axis]
#include "axes.hpp"

namespace tessera {

inline constexpr auto T = axis<"T", N + 1_c>;
inline constexpr auto J = axis<"J", T>;

#ifdef TWIN
inline auto f(Tensor<B, J> mask, Tensor<B, H, T, J> scores) { return expand_as(mask, scores); }
#else
inline auto f(Tensor<B, T> mask, Tensor<B, H, T, T> scores) { return expand_as(mask, scores); }
#endif

}  // namespace tessera
