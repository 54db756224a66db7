// An einsum has plain names only.
// expect: einsum<b n (h k), d e -> b n e> at 6: an einsum has plain names only, no brackets and no numbers; use
// rearrange for those [pattern-syntax]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> x, Tensor<D, D> w) { return einsum<"b n d, d e -> b n e">(x, w); }
#else
inline auto f(Tensor<B, N, D> x, Tensor<D, D> w) { return einsum<"b n (h k), d e -> b n e">(x, w); }
#endif

}  // namespace tessera
