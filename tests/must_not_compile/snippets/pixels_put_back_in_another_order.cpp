// MAE's decoder gives C*P*P numbers a patch; its pixels are put back as (p q c).
// expect: rearrange<b (gh gw) (p q c) -> b c (gh p) (gw q)> at 12: (p q c) is P*P*C, and axis 2 of [B, N=196,
// C*P*P=768] is C*P*P, the same factors in another order (did you mean (c p q)?) [pattern-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, C * P * P> x) {
  return rearrange<"b (gh gw) (c p q) -> b c (gh p) (gw q)">(x, "gh"_is(GH), "p"_is(P), "q"_is(P));
}
#else
inline auto f(Tensor<B, N, C * P * P> x) {
  return rearrange<"b (gh gw) (p q c) -> b c (gh p) (gw q)">(x, "gh"_is(GH), "p"_is(P), "q"_is(P));
}
#endif

}  // namespace tessera
