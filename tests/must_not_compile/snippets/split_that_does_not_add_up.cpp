// The sizes add up to the axis.
// expect: split<1> of [B, N+1=197, D=192] into [2, N=196]: they add up to N+2=198, and axis 1 is N+1=197 (did you
// mean split<1>(x, 1_c, N)?) [split-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> x) { return split<1>(x, 1_c, N); }
#else
inline auto f(Tensor<B, N + 1_c, D> x) { return split<1>(x, 2_c, N); }
#endif

}  // namespace tessera
