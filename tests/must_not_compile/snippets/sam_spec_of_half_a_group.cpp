// The last block of each group attends to the whole map: a group that is cut off has none.
// expect: 13 blocks make no whole groups of 3, whose last block attends to the whole map (did you mean .depth = 15?)
// [sam-spec]
#include "dsl/trace.hpp"
#include "models/sam.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::SamEncoder<{.depth = 15}>;
#else
using Model = models::SamEncoder<{.depth = 13}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
