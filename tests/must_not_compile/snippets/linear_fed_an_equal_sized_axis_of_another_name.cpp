// 64 words are not 64 channels, although the sizes agree.
// expect: linear (K=64 -> K=64) cannot take [B, WORDS=64]: it ends in WORDS=64, needs K=64 (equal sizes, different
// names: if they mean the same, say so with rename<1>(x, K)) [linear-input]
#include "axes.hpp"

namespace tessera {

inline constexpr auto WORDS = axis<"WORDS", 64>;

#ifdef TWIN
inline auto f(const Linear<K, K>& map, Tensor<B, WORDS> x) { return map(rename<1>(x, K)); }
#else
inline auto f(const Linear<K, K>& map, Tensor<B, WORDS> x) { return map(x); }
#endif

}  // namespace tessera
