// Scores are [.., queries, keys], and both are the tokens; a row of probabilities is one query's.
// expect: softmax<-2> of [B, H=3, T=197, T=197]: axes 2 and 3 are both T=197; attention normalises over the keys, the
// later one (did you mean softmax<-1>? an alias for one of the two says that axis 2 is meant) [axis-equal]
#include "axes.hpp"

namespace tessera {

inline constexpr auto T = axis<"T", N + 1_c>;

#ifdef TWIN
inline auto f(Tensor<B, H, T, T> scores) { return softmax<-1>(scores); }
#else
inline auto f(Tensor<B, H, T, T> scores) { return softmax<-2>(scores); }
#endif

}  // namespace tessera
