// Each group has as many heads of queries as the next.
// expect: 12 / G=5 is not exact: it leaves 2; nearest that work: G=4 or G=6; or 10 or 15 in place of 12
// [dim-division]
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera {

using V = models::VitAxes<{.width = 768, .heads = 12, .depth = 2}>;

#ifdef TWIN
using Attn = models::Attention<V, models::GroupedQkv<V, 6>>;
#else
using Attn = models::Attention<V, models::GroupedQkv<V, 5>>;
#endif

inline auto f(const Attn& attn, V::Tokens x) { return attn(x); }

}  // namespace tessera
