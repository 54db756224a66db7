// Positions are for the patches, and the tokens have a class token as well.
// expect: add [B, T=197, D=192] + [N=196, D=192]: axis 1 is T=197 on the left and N=196 on the right (short of
// CLS=1: did you mean to add it before the concat, or [T=197, D=192] on the right?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto CLS = axis<"CLS", 1>;
inline constexpr auto T = axis<"T", CLS + N>;

#ifdef TWIN
inline auto f(Tensor<B, T, D> tokens, Tensor<T, D> positions) { return tokens + positions; }
#else
inline auto f(Tensor<B, T, D> tokens, Tensor<N, D> positions) { return tokens + positions; }
#endif

}  // namespace tessera
