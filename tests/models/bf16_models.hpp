// Models for the tests of products of bf16.
#pragma once

#include "dsl/tessera.hpp"
#include "models/vit.hpp"

namespace tessera::test {

/// Every kind of product, at sizes that leave a rest everywhere: linear maps, their gradients, heads of attention
/// without a softmax, a class's row alone. With small integers all of it is exact.
struct WholeNumbers : Module {
  static constexpr auto B = axis<"B">;
  static constexpr auto N = axis<"N", 37>;
  static constexpr auto D = axis<"D", 40>;
  static constexpr auto H = axis<"H", 2>;
  static constexpr auto K = axis<"K", 36>;
  static constexpr auto CLASSES = axis<"CLASSES", 18>;

  Linear<D, H * K> keys, values;
  Linear<H * K, D> proj;
  Linear<N * D, CLASSES> head;
  TESSERA_MEMBERS(WholeNumbers, keys, values, proj, head)
  static constexpr Recipe recipe{};

  Tensor<B, CLASSES> forward(Tensor<B, N, D> x) const {
    const auto k = rearrange<"b n (h k) -> b h n k">(keys(x), "h"_is(H), "k"_is(K));
    const auto v = rearrange<"b n (h k) -> b h n k">(values(x), "h"_is(H), "k"_is(K));
    const auto scores = einsum<"b h i k, b h j k -> b h i j">(k, k);
    const auto mixed = einsum<"b h i j, b h j k -> b h i k">(scores, v);
    return head(reshape<B, N * D>(proj(rearrange<"b h n k -> b n (h k)">(mixed))));
  }
};

/// Narrow heads, and tokens that are no multiple of anything.
using SmallVit = models::Vit<{.image = 32, .patch = 4, .width = 48, .heads = 3, .depth = 2, .classes = 10}>;

/// Of 257 tokens, so that attention goes by blocks of its queries.
using BlockVit = models::Vit<{.image = 64, .patch = 4, .width = 48, .heads = 3, .depth = 2, .classes = 10}>;

/// Of 1,600 tokens, so that attention goes by blocks of its keys as well.
using KeysVit = models::Vit<{.image = 160,
                             .patch = 4,
                             .channels = 1,
                             .width = 32,
                             .heads = 1,
                             .depth = 1,
                             .classes = 10,
                             .hidden = 16,
                             .class_token = false,
                             .pooling = models::Pooling::mean}>;

}  // namespace tessera::test
