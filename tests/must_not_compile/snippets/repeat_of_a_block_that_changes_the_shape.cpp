// What leaves the block enters it again.
// expect: Repeat applies a block that takes [B, N+1=197, D=192] and returns [B, N+1=197, M=768]; it has to return the
// shape it takes [repeat-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
using Map = Linear<D, D>;
#else
using Map = Linear<D, M>;
#endif

inline auto f(const Repeat<6>& times, const Map& map, Tensor<B, N + 1_c, D> x) { return times(x, map); }

}  // namespace tessera
