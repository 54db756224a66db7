// A VQGAN of three levels halves its images twice, and that is the only error of the whole model.
// expect: 18 / 4 is not exact: it leaves 2; nearest that work: 3 or 6; or 16 or 20 in place of 18 [dim-division]
#include "dsl/trace.hpp"
#include "models/vqgan.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::VqganEncode<{.image = 20, .ch = 8, .mult = {1, 1, 2}, .blocks = 1, .groups = 8}>;
#else
using Model = models::VqganEncode<{.image = 18, .ch = 8, .mult = {1, 1, 2}, .blocks = 1, .groups = 8}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
