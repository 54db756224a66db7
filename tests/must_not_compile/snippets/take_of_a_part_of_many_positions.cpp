// Only one position can be taken; a part keeps its axis.
// expect: take<N> of [B, T=197, D=192]: N=196 is not one position, and its axis cannot go away (did you mean part<N>?)
// [part-size]
#include "axes.hpp"

namespace tessera {

inline constexpr auto CLS = axis<"CLS", 1>;
inline constexpr auto T = axis<"T", CLS + N>;

#ifdef TWIN
inline auto f(Tensor<B, T, D> x) { return part<N>(x); }
#else
inline auto f(Tensor<B, T, D> x) { return take<N>(x); }
#endif

}  // namespace tessera
