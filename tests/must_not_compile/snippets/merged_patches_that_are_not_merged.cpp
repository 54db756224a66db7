// Swin's patch merging maps four patches together.
// expect: linear (4*D=768 -> 2*D=384) cannot take [B, N=196, D=192]: it ends in D=192, needs 4*D=768 (4 times as short:
// did you mean a concat<2> of 4?) [linear-input]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Linear<4_c * D, 2_c * D>& reduction, std::array<Tensor<B, N, D>, 4> x) {
  return reduction(concat<2>(x, 4_c));
}
#else
inline auto f(const Linear<4_c * D, 2_c * D>& reduction, Tensor<B, N, D> x) { return reduction(x); }
#endif

}  // namespace tessera
