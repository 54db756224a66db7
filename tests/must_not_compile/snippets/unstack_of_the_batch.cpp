// How many images there are is known only when the program runs.
// expect: unstack<1> of [3, B, D=192] into 3 tensors: axis 1 is B [unstack-count]
#include "axes.hpp"

namespace tessera {

inline auto f(Tensor<3_c, B, D> qkv) {
#ifdef TWIN
  const auto [q, k, v] = unstack<0>(qkv, 3_c);
#else
  const auto [q, k, v] = unstack<1>(qkv, 3_c);
#endif
  return softmax<-1>(q * k + v);
}

}  // namespace tessera
