// A model without a class token is pooled another way.
// expect: a ViT without a class token is pooled by something else; did you mean .pooling = Pooling::mean? [vit-spec]
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera {

using models::Pooling;

#ifdef TWIN
using Model = models::Vit<{.class_token = false, .pooling = Pooling::mean}>;
#else
using Model = models::Vit<{.class_token = false}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
