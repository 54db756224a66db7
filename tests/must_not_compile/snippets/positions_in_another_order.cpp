// Sums of named parts stand in an order.
// expect: add [B, T=197, D=192] + [CLS+N=197, D=192]: axis 1 is T=197 on the left and CLS+N=197 on the right (the same
// parts in another order: did you mean CLS, GH*GW in the concat?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto CLS = axis<"CLS", 1>;
inline constexpr auto T = axis<"T", CLS + N>;

// did you mean: Tensor<CLS + N, D> positions
#ifdef TWIN
inline auto f(Tensor<B, T, D> tokens, Tensor<CLS + N, D> positions) { return tokens + positions; }
#else
inline auto f(Tensor<B, T, D> tokens, Tensor<N + CLS, D> positions) { return tokens + positions; }
#endif

}  // namespace tessera
