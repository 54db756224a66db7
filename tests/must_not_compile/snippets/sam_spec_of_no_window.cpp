// No window is no way to say that all blocks attend to the whole map: groups of one block say that.
// expect: a SAM image encoder has 0 tokens across a window, needs at least 1 [sam-spec]
#include "dsl/trace.hpp"
#include "models/sam.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::SamEncoder<{.image = 224, .whole_every = 1}>;
#else
using Model = models::SamEncoder<{.image = 224, .window = 0}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
