// The second argument of Attention makes queries, keys and values, the third places them.
// expect: the second argument of Attention makes queries, keys and values, and Rotary places them; did you mean
// Attention<V, FusedQkv<...>, Rotary<...>>? [module-input]
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera {

using namespace models;

using V = VitAxes<{.depth = 2}>;

#ifdef TWIN
using Attn = Attention<V, FusedQkv<V>, Rotary<V, Rope{}>>;
#else
using Attn = Attention<V, Rotary<V, Rope{}>>;
#endif

inline auto f(const Attn& attn, V::Tokens x) { return attn(x); }

}  // namespace tessera
