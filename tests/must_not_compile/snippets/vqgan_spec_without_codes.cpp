// A model of the whole VQGAN without codes is one error, not one for each of its parts.
// expect: a VQGAN has 0 codes, needs at least 1 [vqgan-spec]
#include "dsl/trace.hpp"
#include "models/vqgan.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::VqganEncode<{.image = 16, .ch = 8, .mult = {1}, .attention = {}, .codes = 16, .groups = 8}>;
#else
using Model = models::VqganEncode<{.image = 16, .ch = 8, .mult = {1}, .attention = {}, .codes = 0, .groups = 8}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
