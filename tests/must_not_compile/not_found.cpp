// What docs/reference/printed.md says is not found: each compiles, though it is wrong. With -DNAMES, what has the
// compiler's words alone.
#include "snippets/axes.hpp"

namespace tessera {

// Keys in the place of queries, both of the same tokens.
inline auto keys_for_queries(Tensor<B, H, N, K> q, Tensor<B, H, N, K> k) {
  return std::pair(einsum<"b h i k, b h j k -> b h i j">(q, k), einsum<"b h i k, b h j k -> b h i j">(k, q));
}

// Numbers: the scale of the whole width in place of a head's.
inline auto scale_of_the_width(Tensor<B, H, N, N> scores) { return scores / sqrt(D); }

// A norm after the sum in place of before.
struct NormBehindTheSum : Module {
  LayerNorm<D> norm;
  Linear<D, D> map;
  TESSERA_MEMBERS(NormBehindTheSum, norm, map)
  Tensor<B, N, D> forward(Tensor<B, N, D> x) const { return norm(x + map(x)); }
};
inline auto norm_behind_the_sum(const NormBehindTheSum& block, Tensor<B, N, D> x) { return block(x); }

#ifdef NAMES
inline auto two_names(Tensor<B, N, 3_c * D> x) {
  const auto [q, k] = chunk<-1>(x, 3_c);
  return q + k;
}
#endif

}  // namespace tessera
