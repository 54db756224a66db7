// The registers are joined to the tokens on one side only.
// expect: add [B, N+R+1=201, D=192] + [B, N+1=197, D=192]: axis 1 is N+R+1=201 on the left and N+1=197 on the right
// (short of R=4: was it left out of a concat? did you mean concat<1>(r, x)?) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto R = axis<"R", 4>;

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c + R, D> x, Tensor<B, N + 1_c, D> attended, Tensor<B, R, D> r) {
  return x + concat<1>(r, attended);
}
#else
inline auto f(Tensor<B, N + 1_c + R, D> x, Tensor<B, N + 1_c, D> attended) { return x + attended; }
#endif

}  // namespace tessera
