// The smoothing is a share.
// expect: cross entropy with a label smoothing of 1.5: it is the share that goes to all classes alike, from 0 to 1
// [label-smoothing]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, D> logits, Tensor<B> labels) { return cross_entropy<0.15>(logits, labels); }
#else
inline auto f(Tensor<B, D> logits, Tensor<B> labels) { return cross_entropy<1.5>(logits, labels); }
#endif

}  // namespace tessera
