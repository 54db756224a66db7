// Logits come first.
// expect: cross entropy of [B] and labels [B, L=10]: it needs one row of logits a label, [B, L=10, J] and [B, L=10]
// (did you mean cross_entropy(logits, labels), the logits first?) [cross-entropy-shape]
#include "axes.hpp"

namespace tessera {

inline constexpr auto L = axis<"L", 10>;

#ifdef TWIN
inline auto f(Tensor<B, L> logits, Tensor<B> labels) { return cross_entropy(logits, labels); }
#else
inline auto f(Tensor<B, L> logits, Tensor<B> labels) { return cross_entropy(labels, logits); }
#endif

}  // namespace tessera
