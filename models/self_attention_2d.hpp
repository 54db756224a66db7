// self_attention_2d: attention over the pixels of a feature map. Heads and values may have widths of their own, and no
// linear map has a bias.
#pragma once

#include <cstdint>

#include "dsl/tessera.hpp"

namespace tessera::models {

/// What can differ from one to another.
struct SelfAttention2dSpec {
  std::int64_t channels = 256;
  std::int64_t height = 16, width = 16;  ///< pixels
  std::int64_t heads = 8;
  std::int64_t head = 32;   ///< width of a head's queries and keys
  std::int64_t value = 32;  ///< width of a head's values
};

/// Feature maps [B, D, FH, FW] -> feature maps of the same shape.
template <SelfAttention2dSpec S>
struct SelfAttention2d : Module {
  static constexpr auto B = axis<"B">;  // the batch, known when the program runs
  static constexpr auto D = axis<"D", S.channels>;
  static constexpr auto FH = axis<"FH", S.height>;
  static constexpr auto FW = axis<"FW", S.width>;
  static constexpr auto N = axis<"N", FH * FW>;  // pixels
  static constexpr auto H = axis<"H", S.heads>;
  static constexpr auto K = axis<"K", S.head>;
  static constexpr auto V = axis<"V", S.value>;

  LinearWithoutBias<D, H * K> q, k;
  LinearWithoutBias<D, H * V> v;
  LinearWithoutBias<H * V, D> out;
  TESSERA_MEMBERS(SelfAttention2d, q, k, v, out)

  Tensor<B, D, FH, FW> forward(Tensor<B, D, FH, FW> x) const {
    const Tensor<B, N, D> pixels = rearrange<"b d y x -> b (y x) d">(x);
    const Tensor<B, H, N, K> queries = rearrange<"b n (h k) -> b h n k">(q(pixels), "h"_is(H));
    const Tensor<B, H, N, K> keys = rearrange<"b n (h k) -> b h n k">(k(pixels), "h"_is(H));
    const Tensor<B, H, N, V> values = rearrange<"b n (h v) -> b h n v">(v(pixels), "h"_is(H));
    const auto attention = softmax<-1>(einsum<"b h i k, b h j k -> b h i j">(queries, keys) / sqrt(K));
    const auto mixed = einsum<"b h i j, b h j v -> b h i v">(attention, values);
    const Tensor<B, N, D> mapped = out(rearrange<"b h n v -> b n (h v)">(mixed));
    return rearrange<"b (y x) d -> b d y x">(mapped, "y"_is(FH), "x"_is(FW));
  }
};

}  // namespace tessera::models
