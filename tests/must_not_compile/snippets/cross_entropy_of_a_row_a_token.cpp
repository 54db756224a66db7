// One row of logits a label: the class token has to be taken first.
// expect: cross entropy of [B, N+1=197, D=192] and labels [B]: it needs one row of logits a label, [B, J] and [B]
// (N+1=197 is one axis too many: did you mean take<1>(x, 0_c), a position of it, or mean<1>(x)?) [cross-entropy-shape]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N + 1_c, D> logits, Tensor<B> labels) { return cross_entropy(take<1>(logits, 0_c), labels); }
#else
inline auto f(Tensor<B, N + 1_c, D> logits, Tensor<B> labels) { return cross_entropy(logits, labels); }
#endif

}  // namespace tessera
