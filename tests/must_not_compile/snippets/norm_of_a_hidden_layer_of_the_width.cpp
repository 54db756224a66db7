// What is normed between the two maps of an MLP is its hidden layer.
// expect: layer norm over [D=192] cannot take [B, N+1=197, M=768]: axis 2 is M=768, needs D=192 (it normalises the
// last axes: did you mean LayerNorm<M>?) [layer-norm-axis]
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera {

using V = models::VitAxes<{.depth = 2}>;

#ifdef TWIN
using Feed = models::SwiGlu<V, LayerNorm<V::M>>;
#else
using Feed = models::SwiGlu<V, LayerNorm<V::D>>;
#endif

inline auto f(const Feed& mlp, V::Tokens x) { return mlp(x); }

}  // namespace tessera
