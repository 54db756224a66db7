// A permutation holds every axis.
// expect: permute<0, 2> of [B, N=196, D=192]: it has 3 axes, and 2 are given [permute-axes]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x) { return permute<0, 2, 1>(x); }
#else
inline auto f(Tensor<B, N, D> x) { return permute<0, 2>(x); }
#endif

}  // namespace tessera
