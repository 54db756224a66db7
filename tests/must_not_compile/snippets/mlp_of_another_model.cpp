// A block has one width, and a part is of the same sizes.
// expect: linear (D=384 -> M=1536) cannot take [B, N+1=197, D=192]: it ends in D=192, needs D=384 (two axes have the
// name D: did you mean a part with the axes of this model?) [linear-input]
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera {

using V = models::VitAxes<{.depth = 2}>;

// did you mean: models::Mlp<V>
#ifdef TWIN
using Block = models::VitBlock<V, models::Attention<V>, models::Mlp<V>>;
#else
using Block = models::VitBlock<V, models::Attention<V>, models::Mlp<models::VitAxes<{.width = 384, .heads = 6}>>>;
#endif

inline auto f(const Block& block, V::Tokens x) { return block(x); }

}  // namespace tessera
