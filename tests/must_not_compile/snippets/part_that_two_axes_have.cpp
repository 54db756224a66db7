// Queries and keys both hold a class token.
// expect: part<N> of [B, H=3, T=197, J=197]: axes 2 and 3 both have the part N=196; say which one: part<N, 2>
// [part-axis]
#include "axes.hpp"

namespace tessera {

inline constexpr auto CLS = axis<"CLS", 1>;
inline constexpr auto T = axis<"T", CLS + N>;
inline constexpr auto J = axis<"J", T>;

#ifdef TWIN
inline auto f(Tensor<B, H, T, J> scores) { return part<N, J>(scores); }
#else
inline auto f(Tensor<B, H, T, J> scores) { return part<N>(scores); }
#endif

}  // namespace tessera
