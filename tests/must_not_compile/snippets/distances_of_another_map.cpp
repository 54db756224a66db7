// The table was made for 64 rows of patches.
// expect: distances along GH=14 need a table [27, width] and were given [127, K=64] (did you mean [27, K=64]?)
// [relative-position-table]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<27_c, K> table) { return by_distance<GH>(table); }
#else
inline auto f(Tensor<127_c, K> table) { return by_distance<GH>(table); }
#endif

}  // namespace tessera
