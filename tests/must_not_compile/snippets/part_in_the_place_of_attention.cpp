// A block takes an attention; queries, keys and values are a part of it.
// expect: VitBlock takes an attention and an MLP, and FusedQkv gives several tensors; did you mean Attention<V,
// FusedQkv<...>>? [module-input]
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera {

using namespace models;

using V = VitAxes<{.depth = 2}>;

#ifdef TWIN
using Block = VitBlock<V, Attention<V, FusedQkv<V>>>;
#else
using Block = VitBlock<V, FusedQkv<V>>;
#endif

inline auto f(const Block& block, V::Tokens x) { return block(x); }

}  // namespace tessera
