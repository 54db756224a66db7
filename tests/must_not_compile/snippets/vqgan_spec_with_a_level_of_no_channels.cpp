// A level has a multiple of the channels of the first convolution.
// expect: level 1 of a VQGAN, counted from 0, has 0 times the channels of its first convolution, needs
// at least 1 [vqgan-spec]
#include "dsl/trace.hpp"
#include "models/vqgan.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::VqganEncode<{.image = 16, .ch = 8, .mult = {1, 2}, .attention = {}, .groups = 8}>;
#else
using Model = models::VqganEncode<{.image = 16, .ch = 8, .mult = {1, 0}, .attention = {}, .groups = 8}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
