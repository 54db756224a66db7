// The mean over the patches leaves the class token out.
// expect: mean<N> of [B, T=197, D=192]: no axis is shown as N, which is a part of axis 1, T=197 (did you mean part<N>
// of it first?) [axis-name]
#include "axes.hpp"

namespace tessera {

inline constexpr auto CLS = axis<"CLS", 1>;
inline constexpr auto T = axis<"T", CLS + N>;

#ifdef TWIN
inline auto f(Tensor<B, T, D> tokens) { return mean<N>(part<N>(tokens)); }
#else
inline auto f(Tensor<B, T, D> tokens) { return mean<N>(tokens); }
#endif

}  // namespace tessera
