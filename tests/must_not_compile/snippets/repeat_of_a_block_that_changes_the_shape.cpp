// What leaves the block enters it again.
// expect: Repeat applies a block that takes [B, N+1=197, D=192] and returns [B, N+1=197, M=768]: axis 2 is M=768, needs
// D=192 (D := H*K); it has to return the shape it takes [repeat-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Repeat<6>& times, const Linear<D, D>& map, Tensor<B, N + 1_c, D> x) { return times(x, map); }
#else
inline auto f(const Repeat<6>& times, const Linear<D, M>& map, Tensor<B, N + 1_c, D> x) { return times(x, map); }
#endif

}  // namespace tessera
