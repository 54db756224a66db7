// An RMS norm built for the tokens is applied to the channels.
// expect: rms norm over [N+1=197] cannot take [B, N+1=197, D=192]: axis 2 is D=192, needs N+1=197 (it normalises the
// last axes: did you mean RmsNorm<D>?) [rms-norm-axis]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const RmsNorm<D>& norm, Tensor<B, N + 1_c, D> x) { return norm(x); }
#else
inline auto f(const RmsNorm<1_c + N>& norm, Tensor<B, N + 1_c, D> x) { return norm(x); }
#endif

}  // namespace tessera
