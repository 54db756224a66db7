// A small Vision Transformer for 8x8 grey images and three classes: fused qkv, all heads at once, class token.
#pragma once

#include "dsl/tessera.hpp"

namespace downstream {

using namespace tessera;

inline constexpr auto B = axis<"B">;           // the batch: known when the program runs
inline constexpr auto P = axis<"P", 4>;        // a patch is P x P pixels
inline constexpr auto G = axis<"G", 8_c / P>;  // patches down, and across
inline constexpr auto N = axis<"N", G * G>;    // patches
inline constexpr auto S = axis<"S", G * P>;    // the image's side
inline constexpr auto H = axis<"H", 2>;        // heads
inline constexpr auto K = axis<"K", 3>;        // width of a head
inline constexpr auto D = axis<"D", H * K>;    // width of a token
inline constexpr auto M = axis<"M", 2_c * D>;  // width of the MLP's hidden layer
inline constexpr auto CLASSES = axis<"CLASSES", 3>;

struct Attention : Module {
  Linear<D, 3_c * H * K> qkv;
  Linear<D, D> proj;
  TESSERA_MEMBERS(Attention, qkv, proj)

  Tensor<B, N + 1_c, D> forward(Tensor<B, N + 1_c, D> x) const {
    const auto t = rearrange<"b n (s h k) -> s b h n k">(qkv(x), "h"_is(H), "k"_is(K));
    const auto q = take<0>(t, 0_c), k = take<0>(t, 1_c), v = take<0>(t, 2_c);
    const auto p = softmax<3>(einsum<"b h i k, b h j k -> b h i j">(q, k) / sqrt(K));
    return proj(rearrange<"b h n k -> b n (h k)">(einsum<"b h i j, b h j k -> b h i k">(p, v)));
  }
};

struct Block : Module {
  LayerNorm<D> norm1;
  Attention attn;
  LayerNorm<D> norm2;
  Sequential<Linear<D, M>, Gelu, Linear<M, D>> mlp;
  TESSERA_MEMBERS(Block, norm1, attn, norm2, mlp)

  Tensor<B, N + 1_c, D> forward(Tensor<B, N + 1_c, D> x) const {
    const auto y = x + attn(norm1(x));
    return y + mlp(norm2(y));
  }
};

struct TinyVit : Module {
  Linear<P * P, D> patch_embed;
  Parameter<1_c, D> cls_token{uniform(0, 1)};
  Stack<Block, 2> blocks;
  Linear<D, CLASSES> head;
  TESSERA_MEMBERS(TinyVit, patch_embed, cls_token, blocks, head)

  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .batch = 32, .epochs = 2};

  Tensor<B, CLASSES> forward(Tensor<B, 1_c, S, S> images) const {
    const auto patches = rearrange<"b 1 (g p) (f q) -> b (g f) (p q)">(images, "p"_is(P), "q"_is(P));
    const auto cls = repeat<"n d -> b n d">(cls_token, "b"_is(B));
    const auto tokens = concat<1>(cls, patch_embed(patches)) + sinusoidal<N + 1_c, D>();
    return head(take<1>(blocks(tokens), 0_c));
  }
};

}  // namespace downstream
