// Three heads are asked for and two are given.
// expect: concat of H=3 tensors was given 2 [concat-count]
#include <array>

#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(std::array<Tensor<B, N, K>, 3> heads) { return concat<2>(heads, H); }
#else
inline auto f(std::array<Tensor<B, N, K>, 2> heads) { return concat<2>(heads, H); }
#endif

}  // namespace tessera
