// MAE's target and what is predicted have a patch's numbers in two orders.
// expect: subtract [B, N=196, C*P*Q=768] - [B, GH*GW=196, C*P*Q=768]: axis 2 is C*P*Q=768 on the left and C*P*Q=768
// on the right (the same factors in another order: C*P*Q is not P*Q*C; did you mean P*Q*C where it was merged?)
// [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto Q = axis<"Q", 16>;

// did you mean: (p q c)
#ifdef TWIN
inline auto f(Tensor<B, N, P * Q * C> predicted, Tensor<B, C, GH * P, GW * Q> images) {
  return predicted - rearrange<"b c (y p) (x q) -> b (y x) (p q c)">(images, "p"_is(P), "q"_is(Q));
}
#else
inline auto f(Tensor<B, N, P * Q * C> predicted, Tensor<B, C, GH * P, GW * Q> images) {
  return predicted - rearrange<"b c (y p) (x q) -> b (y x) (c p q)">(images, "p"_is(P), "q"_is(Q));
}
#endif

}  // namespace tessera
