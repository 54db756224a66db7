// 224 pixels are not whole patches of 15, and that is the only error of the whole model.
// expect: 224 / P=15 is not exact: it leaves 14; nearest that work: P=14 or P=16; or 210 or 225 in place of 224
// [dim-division]
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::Vit<{.patch = 16}>;
#else
using Model = models::Vit<{.patch = 15}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
