// Queries, keys and values are three tensors, not two.
// expect: unstack<0> of [3, B, H=3, N+1=197, K=64] into 2 tensors: axis 0 is 3 (did you mean unstack<0>(x, 3_c)?)
// [unstack-count]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<3_c, B, H, N + 1_c, K> qkv) { return unstack<0>(qkv, 3_c); }
#else
inline auto f(Tensor<3_c, B, H, N + 1_c, K> qkv) { return unstack<0>(qkv, 2_c); }
#endif

}  // namespace tessera
