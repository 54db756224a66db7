// The 1 of N + 1 has no name, so that nobody knows on which side of N it lies.
// expect: part<N> of [B, N+1=197, D=192]: no axis is a sum with the part N=196; axis 1 is N+1=197, whose parts have no
// order, because not all of them have names (did you mean axis<CLS, 1> for the 1?) [part-axis]
#include "axes.hpp"

namespace tessera {

inline constexpr auto CLS = axis<"CLS", 1>;
inline constexpr auto T = axis<"T", CLS + N>;

#ifdef TWIN
inline auto f(Tensor<B, T, D> x) { return part<N>(x); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return part<N>(x); }
#endif

}  // namespace tessera
