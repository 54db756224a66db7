// MAE's decoder is narrower than its encoder.
// expect: add [B, N+1=197, E=128] + [N+1=197, D=192]: axis 2 is E=128 on the left and D=192 on the right (did you mean
// [N+1=197, E=128] on the right?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto E = axis<"E", 128>;

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, E> x, const Parameter<N + 1_c, E>& positions) { return x + positions; }
#else
inline auto f(Tensor<B, N + 1_c, E> x, const Parameter<N + 1_c, D>& positions) { return x + positions; }
#endif

}  // namespace tessera
