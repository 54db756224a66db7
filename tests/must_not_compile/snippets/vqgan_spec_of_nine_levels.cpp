// Published models have five or six levels; there is room for eight.
// expect: a VQGAN has 9 levels, needs at most 8 [vqgan-spec]
#include "dsl/trace.hpp"
#include "models/vqgan.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::VqganDecode<{.image = 256, .ch = 8, .mult = {1, 1, 1, 1, 1, 1, 1, 1}, .groups = 8}>;
#else
using Model = models::VqganDecode<{.image = 256, .ch = 8, .mult = {1, 1, 1, 1, 1, 1, 1, 1, 1}, .groups = 8}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
