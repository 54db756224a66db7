// Registers stand between the class token and the patches.
// expect: slice<1> of [B, T=201, D=192] takes N=196 positions from 1, and N begins at CLS+R=5 (did you mean slice<1>(x,
// CLS + R, N)?) [slice-part]
#include "axes.hpp"

namespace tessera {

inline constexpr auto CLS = axis<"CLS", 1>;
inline constexpr auto R = axis<"R", 4>;
inline constexpr auto T = axis<"T", CLS + R + N>;

#ifdef TWIN
inline auto f(Tensor<B, T, D> x) { return slice<1>(x, CLS + R, N); }
#else
inline auto f(Tensor<B, T, D> x) { return slice<1>(x, 1_c, N); }
#endif

}  // namespace tessera
