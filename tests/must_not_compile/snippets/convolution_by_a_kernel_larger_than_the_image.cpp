// A kernel of 16 rows does not fit into 14.
// expect: conv2d of [B, D=192, GH=14, GW=14] by [D=192, D=192, P=16, P=16]: the kernel reaches over 16 rows, and with
// padding there are 14; a padding of 1 would do [convolution-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, D, GH, GW> x) { return Conv2d<D, D, P, P, Convolution{.padding = 1}>{}(x); }
#else
inline auto f(Tensor<B, D, GH, GW> x) { return Conv2d<D, D, P, P>{}(x); }
#endif

}  // namespace tessera
