// Features of both kinds are rows of one tensor.
// expect: a vector twice as wide as a token stands before no tokens; did you mean .features = Features::pooled?
// [vit-spec]
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera {

using models::Features;
using models::Pooling;

#ifdef TWIN
using Model = models::Vit<{.classes = 0, .pooling = Pooling::class_token_and_mean, .features = Features::pooled}>;
#else
using Model = models::Vit<{.classes = 0, .pooling = Pooling::class_token_and_mean, .features = Features::both}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
