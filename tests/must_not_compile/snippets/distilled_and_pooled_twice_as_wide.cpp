// A distilled model has a head for each of its tokens, which sees one token.
// expect: a distilled ViT averages the logits of two tokens, each as wide as one; did you mean .pooling =
// Pooling::class_token? [vit-spec]
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera {

using models::Pooling;

#ifdef TWIN
using Model = models::Vit<{.distilled = true, .pooling = Pooling::class_token}>;
#else
using Model = models::Vit<{.distilled = true, .pooling = Pooling::class_token_and_mean}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
