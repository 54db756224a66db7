// The published 32 groups are of multiples of 32 channels.
// expect: group norm of 48 channels in 32 groups: 16 channels are left over; 24 groups divide them [group-norm-groups]
#include "dsl/trace.hpp"
#include "models/vqgan.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::VqganEncode<{.image = 16, .ch = 48, .mult = {1}, .blocks = 1, .attention = {}, .groups = 24}>;
#else
using Model = models::VqganEncode<{.image = 16, .ch = 48, .mult = {1}, .blocks = 1, .attention = {}}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
