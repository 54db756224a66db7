// Attention.
#include "tests/onnx/row.hpp"

namespace tessera::test {

namespace {

inline constexpr auto H = axis<"H", 3>;   // heads
inline constexpr auto T = axis<"T", 4>;   // queries
inline constexpr auto S = axis<"S", 6>;   // keys and values
inline constexpr auto K = axis<"K", 8>;   // of a head
inline constexpr auto W = axis<"W", 10>;  // of a head's values
inline constexpr double scale = 0.009999999776482582;

template <AnyTensor Q, AnyTensor X>
auto scores(const Q& q, const X& k) {
  return einsum<"b h t k, b h s k -> b h t s">(q, k);
}

template <AnyTensor P, AnyTensor V>
auto attended(const P& scores, const V& v) {
  return einsum<"b h t s, b h s k -> b h t k">(softmax<-1>(scores), v);
}

template <AnyTensor X>
auto split_heads(const X& x) {
  return rearrange<"b t (h k) -> b h t k">(x, "h"_is(H));
}

template <AnyTensor X>
auto merge_heads(const X& x) {
  return rearrange<"b h t k -> b t (h k)">(x);
}

}  // namespace

std::vector<Row> attention_rows() {
  return {
      TESSERA_ROW(test_attention_3d,
                  [](Tensor<B, T, H * K> q, Tensor<B, S, H * K> k, Tensor<B, S, H * K> v) {
                    const auto weights = scores(split_heads(q), split_heads(k)) / sqrt(K);
                    return merge_heads(attended(weights, split_heads(v)));
                  }),
      TESSERA_ROW(test_attention_3d_causal,
                  [](Tensor<B, T, H * K> q, Tensor<B, S, H * K> k, Tensor<B, S, H * K> v) {
                    const auto weights = scores(split_heads(q), split_heads(k)) / sqrt(K);
                    return merge_heads(attended(mask_scores(weights, causal_mask<T, S>()), split_heads(v)));
                  }),
      TESSERA_ROW(test_attention_3d_scaled,
                  [](Tensor<B, T, H * K> q, Tensor<B, S, H * K> k, Tensor<B, S, H * K> v) {
                    const auto weights = scores(split_heads(q), split_heads(k)) * scale;
                    return merge_heads(attended(weights, split_heads(v)));
                  }),
      TESSERA_ROW(test_attention_3d_transpose_verification,
                  [](Tensor<B, 2_c, H * 4_c> q, Tensor<B, 2_c, H * 4_c> k, Tensor<B, 2_c, H * 4_c> v) {
                    const auto weights = scores(split_heads(q), split_heads(k)) / sqrt(4_c);
                    return merge_heads(attended(weights, split_heads(v)));
                  }),
      TESSERA_ROW(test_attention_4d_attn_mask,
                  [](Tensor<B, H, T, K> q, Tensor<B, H, S, K> k, Tensor<B, H, S, K> v, Tensor<T, S> mask) {
                    return attended(scores(q, k) / sqrt(K) + mask, v);
                  }),
      TESSERA_ROW(test_attention_4d_diff_heads_sizes,
                  [](Tensor<B, H, T, K> q, Tensor<B, H, S, K> k, Tensor<B, H, S, W> v) {
                    return attended(scores(q, k) / sqrt(K), v);
                  }),
      TESSERA_ROW(test_attention_4d_diff_heads_sizes_scaled,
                  [](Tensor<B, H, T, K> q, Tensor<B, H, S, K> k, Tensor<B, H, S, W> v) {
                    return attended(scores(q, k) * scale, v);
                  }),
      TESSERA_ROW(test_attention_4d_softcap,
                  [](Tensor<B, H, T, K> q, Tensor<B, H, S, K> k, Tensor<B, H, S, K> v) {
                    return attended(tanh(scores(q, k) / sqrt(K) / 2.0) * 2.0, v);
                  }),
  };
}

}  // namespace tessera::test
