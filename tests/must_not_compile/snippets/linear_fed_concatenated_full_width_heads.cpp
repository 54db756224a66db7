// Heads of full width, concatenated, are H*D wide.
// expect: linear (D=192 -> D=192) cannot take [B, N+1=197, D*H=576]: it ends in D*H=576, needs D=192 (H=3 times as
// long: did you mean Linear<H * D, D>?) [linear-input]
#include <array>

#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Linear<H * D, D>& map, std::array<Tensor<B, N + 1_c, D>, 3> heads) {
  return map(concat<2>(heads, H));
}
#else
inline auto f(const Linear<D, D>& map, std::array<Tensor<B, N + 1_c, D>, 3> heads) { return map(concat<2>(heads, H)); }
#endif

}  // namespace tessera
