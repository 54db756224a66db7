// Queries are turned before their heads stand in front of the tokens.
// expect: rope of a grid of GH=14 x GW=14 patches cannot turn [B, N+1=197, H=3, K=64]: axis 2 is H=3, needs 196
// tokens or more, those before the patches first (did you mean rearrange<b n h k -> b h n k>?) [rope-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, H, K> queries) {
  return rope<Rope{}, GH, GW>(rearrange<"b n h k -> b h n k">(queries));
}
#else
inline auto f(Tensor<B, N + 1_c, H, K> queries) { return rope<Rope{}, GH, GW>(queries); }
#endif

}  // namespace tessera
