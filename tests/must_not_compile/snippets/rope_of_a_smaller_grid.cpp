// The tokens are those of the grid that turns them.
// expect: rope of a grid of W=7 x W=7 patches cannot turn [B, H=3, N+1=197, K=64]: axis 2 is N+1=197 of another grid
// (N+1 := GH*GW+1; did you mean that one?) [rope-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto W = axis<"W", 7>;

// did you mean: rope<Rope{}, GH, GW>
#ifdef TWIN
inline auto f(Tensor<B, H, N + 1_c, K> queries) { return rope<Rope{}, GH, GW>(queries); }
#else
inline auto f(Tensor<B, H, N + 1_c, K> queries) { return rope<Rope{}, W, W>(queries); }
#endif

}  // namespace tessera
