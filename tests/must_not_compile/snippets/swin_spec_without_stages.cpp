// The first stage has no blocks, so that there is no stage at all: one error, not one for each part of the model.
// expect: a Swin Transformer has 0 stages, needs at least 1 [swin-spec]
#include "dsl/trace.hpp"
#include "models/swin.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::Swin<{.depths = {2, 2, 6, 2}}>;
#else
using Model = models::Swin<{.depths = {0, 2, 6, 2}}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
