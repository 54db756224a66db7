// A gate of 64 words is no gate of 64 channels, although the sizes agree.
// expect: multiply [B, N=196, K=64] * [WORDS=64]: axis 2 is K=64 on the left and WORDS=64 on the right (equal sizes,
// different names: if they mean the same, say so with rename<0>(x, K)) [elementwise-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto WORDS = axis<"WORDS", 64>;

#ifdef TWIN
inline auto f(Tensor<B, N, K> x, Parameter<WORDS> gate) { return x * rename<0>(gate, K); }
#else
inline auto f(Tensor<B, N, K> x, Parameter<WORDS> gate) { return x * gate; }
#endif

}  // namespace tessera
