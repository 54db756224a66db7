// The registers of models/vit.hpp stand in front of the patches, behind a class token without a name.
// expect: slice<1> of [B, N+R+1=201, D=192] takes N=196 positions from 1, and leaves R behind them, and a sum with a
// number has no order (did you mean slice<1>(x, R + 1_c, N)? else name the number: axis<CLS, 1>) [slice-part]
#include "axes.hpp"

namespace tessera {

inline constexpr auto R = axis<"R", 4>;

#ifdef TWIN
inline auto f(Tensor<B, 1_c + R + N, D> x) { return slice<1>(x, R + 1_c, N); }
#else
inline auto f(Tensor<B, 1_c + R + N, D> x) { return slice<1>(x, 1_c, N); }
#endif

}  // namespace tessera
