// Positions learned at 224 pixels are added to the tokens of 384.
// expect: add [B, BIG+1=577, D=192] + [N+1=197, D=192]: axis 1 is BIG+1=577 on the left and N+1=197 on the right (did
// you mean [BIG+1=577, D=192] on the right?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto BIG = axis<"BIG", 24_c * 24_c>;

#ifdef TWIN
inline auto f(Tensor<B, BIG + 1_c, D> x, Parameter<BIG + 1_c, D> positions) { return x + positions; }
#else
inline auto f(Tensor<B, BIG + 1_c, D> x, Parameter<N + 1_c, D> positions) { return x + positions; }
#endif

}  // namespace tessera
