// The tokens are without the class token.
// expect: take<CLS> of [B, N=196, D=192]: no axis is a sum with the part CLS=1 (was it left out of a concat?)
// [part-axis]
#include "axes.hpp"

namespace tessera {

inline constexpr auto CLS = axis<"CLS", 1>;
inline constexpr auto T = axis<"T", CLS + N>;

#ifdef TWIN
inline auto f(Tensor<B, T, D> x) { return take<CLS>(x); }
#else
inline auto f(Tensor<B, N, D> x) { return take<CLS>(x); }
#endif

}  // namespace tessera
