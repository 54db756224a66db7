// A ViT of width 192 cannot have 5 heads, and that is the only error of the whole model.
// expect: 192 / H=5 is not exact: it leaves 2; nearest that work: H=4 or H=6; or 190 or 195 in place of 192
// [dim-division]
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::Vit<{.heads = 6}>;
#else
using Model = models::Vit<{.heads = 5}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
