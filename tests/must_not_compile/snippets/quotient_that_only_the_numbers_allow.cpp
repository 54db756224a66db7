// An axis without a definition has no factors, although 3 divides 192.
// expect: chunk<1> of [B, WIDTH=192] into H=3 parts: WIDTH=192 / H=3 is exact in numbers only: H is no factor of WIDTH;
// where that is meant, declare the quotient as an axis of its own, Q = axis<Q, 64>, and define WIDTH as the product,
// the outer one first: H * Q or Q * H [dim-factor]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr auto WIDTH = axis<"WIDTH", H * K>;
inline auto f(Tensor<B, WIDTH> x) { return chunk<1>(x, H); }
#else
inline constexpr auto WIDTH = axis<"WIDTH", 192>;
inline auto f(Tensor<B, WIDTH> x) { return chunk<1>(x, H); }
#endif

}  // namespace tessera
