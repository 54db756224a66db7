// Each of the two heads of a distilled model sees one token.
// expect: add [B, L=1000] + [B, N+2=198, L=1000]: axis 1 is B on the left and N+2=198 on the right (nothing is
// stretched silently: did you mean repeat<b l -> b n l>, or expand_as, or mean<1>(x) or take<1>(x, 0_c) of the
// other?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto L = axis<"L", 1000>;

#ifdef TWIN
inline auto f(const Linear<D, L>& head, const Linear<D, L>& distilled, Tensor<B, N + 2_c, D> x) {
  return head(take<1>(x, 0_c)) + distilled(take<1>(x, 1_c));
}
#else
inline auto f(const Linear<D, L>& head, const Linear<D, L>& distilled, Tensor<B, N + 2_c, D> x) {
  return head(take<1>(x, 0_c)) + distilled(x);
}
#endif

}  // namespace tessera
