// The head halves the channels of what is fused.
// expect: a DPT head halves the channels of fused maps, and 63 is odd [dpt-spec]
#include "dsl/trace.hpp"
#include "models/dpt.hpp"

namespace tessera {

using models::VitSpec;
inline constexpr VitSpec encoder{.classes = 0, .layers = {2, 5, 8, 11}};

#ifdef TWIN
using Model = models::Dpt<encoder, {.fusion = 64}>;
#else
using Model = models::Dpt<encoder, {.fusion = 63}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
