// MAE's mask tokens are as wide as the decoder.
// expect: concat<1> of [B, V=49, E=128] and [B, N=196, D=192]: axis 2 is E=128 and D=192 (did you mean [B, V=49,
// D=192] or [B, N=196, E=128]?) [concat-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto E = axis<"E", 128>;
inline constexpr auto V = axis<"V", 49>;

#ifdef TWIN
inline auto f(Tensor<B, V, E> seen, Tensor<B, N, E> masked) { return concat<1>(seen, masked); }
#else
inline auto f(Tensor<B, V, E> seen, Tensor<B, N, D> masked) { return concat<1>(seen, masked); }
#endif

}  // namespace tessera
