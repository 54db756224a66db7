// A mean over the channels leaves the tokens.
// expect: linear (D=192 -> CLASSES=1000) cannot take [B, N=196]: it ends in N=196, needs D=192 (D := H*K; did you mean
// a mean over another axis, or a Linear<N, D> in between?) [linear-input]
#include "axes.hpp"

namespace tessera {

inline constexpr auto CLASSES = axis<"CLASSES", 1000>;

// did you mean: mean<1>(x)
#ifdef TWIN
inline auto f(const Linear<D, CLASSES>& head, Tensor<B, N, D> x) { return head(mean<1>(x)); }
#else
inline auto f(const Linear<D, CLASSES>& head, Tensor<B, N, D> x) { return head(mean<2>(x)); }
#endif

}  // namespace tessera
