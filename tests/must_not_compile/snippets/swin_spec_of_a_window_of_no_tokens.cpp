// A window is at least one token: 0 does not stand for the whole map, which a window as large as it is.
// expect: a Swin Transformer has 0 tokens across a window, needs at least 1 [swin-spec]
#include "dsl/trace.hpp"
#include "models/swin_v2.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::SwinV2<{.image = 256, .windows = {8, 8, 8, 8}}>;
#else
using Model = models::SwinV2<{.image = 256, .windows = {8, 8, 8, 0}}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
