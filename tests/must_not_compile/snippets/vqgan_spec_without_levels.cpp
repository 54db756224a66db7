// The levels of an encoder are as many as it has multiples of its width.
// expect: a VQGAN has 0 levels, needs at least 1 [vqgan-spec]
#include "dsl/trace.hpp"
#include "models/vqgan.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::VqganEncode<{.image = 16, .ch = 8, .mult = {1}, .attention = {}, .groups = 8}>;
#else
using Model = models::VqganEncode<{.image = 16, .ch = 8, .mult = {}, .attention = {}, .groups = 8}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
