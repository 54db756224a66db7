// Distances that were learned in other windows are of SwinV2: a table of Swin has a bias for each of its own.
// expect: a table of biases is of its own windows, and distances in others are of V2; did you mean SwinV2? [swin-spec]
#include "dsl/trace.hpp"
#include "models/swin_v2.hpp"

namespace tessera {

// did you mean: models::SwinV2<{.windows = {7, 7, 7, 7}, .pretrained_windows = {12, 12, 12, 6}}>
#ifdef TWIN
using Model = models::SwinV2<{.windows = {7, 7, 7, 7}, .pretrained_windows = {12, 12, 12, 6}}>;
#else
using Model = models::Swin<{.windows = {7, 7, 7, 7}, .pretrained_windows = {12, 12, 12, 6}}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
