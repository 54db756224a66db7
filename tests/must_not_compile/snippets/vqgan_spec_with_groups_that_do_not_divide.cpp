// The published 32 groups are of multiples of 32 channels, and that is the only error of a phase of training.
// expect: group norm of 48 channels in 32 groups: 16 channels are left over; 24 groups divide them [group-norm-groups]
#include "dsl/trace.hpp"
#include "models/vqgan_training.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr models::VqganSpec spec{.image = 16, .ch = 48, .mult = {1}, .blocks = 1, .attention = {}, .groups = 24};
#else
inline constexpr models::VqganSpec spec{.image = 16, .ch = 48, .mult = {1}, .blocks = 1, .attention = {}};
#endif
using Model = models::VqganGenerator<{.vqgan = spec, .layers = 1, .perceptual_weight = 0}>;

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
