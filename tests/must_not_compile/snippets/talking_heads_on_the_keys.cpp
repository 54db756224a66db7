// Talking heads map heads to heads, and the last axis of scores is the keys.
// expect: linear (H=3 -> H=3) cannot take [B, H=3, N=196, J=196]: it ends in J=196, needs H=3 (did you mean rearrange<b
// h n j -> b n j h>?) [linear-input]
#include "axes.hpp"

namespace tessera {

inline constexpr auto J = axis<"J", N>;

#ifdef TWIN
inline auto f(const Linear<H, H>& talk, Tensor<B, H, N, J> scores) {
  return talk(rearrange<"b h n j -> b n j h">(scores));
}
#else
inline auto f(const Linear<H, H>& talk, Tensor<B, H, N, J> scores) { return talk(scores); }
#endif

}  // namespace tessera
