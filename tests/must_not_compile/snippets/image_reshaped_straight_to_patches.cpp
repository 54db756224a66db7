// A plain reshape puts pixels of different patches into one row.
// expect: reshape [B, C=3, IH=224, IW=224] -> [B, N=196, C*P*P=768] mixes numbers that do not belong together: C,
// IH, IW are interleaved into N, C*P*P; did you mean rearrange<b c (gh p) (gw q) -> b (gh gw) (c p q)>?
// [reshape-mixes]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, C, IH, IW> images) {
  return rearrange<"b c (gh p) (gw q) -> b (gh gw) (c p q)">(images, "p"_is(P), "q"_is(P));
}
#else
inline auto f(Tensor<B, C, IH, IW> images) { return reshape<B, N, C * P * P>(images); }
#endif

}  // namespace tessera
