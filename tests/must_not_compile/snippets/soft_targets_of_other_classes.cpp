// There is one target a logit.
// expect: cross entropy of [B, D=192] and targets [B, K=64]: it needs one row of logits a label, [B, J] and [B], or
// targets of the shape of the logits [cross-entropy-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, D> logits, Tensor<B, D> targets) { return cross_entropy(logits, targets); }
#else
inline auto f(Tensor<B, D> logits, Tensor<B, K> targets) { return cross_entropy(logits, targets); }
#endif

}  // namespace tessera
