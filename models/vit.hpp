// vit: the Vision Transformer of Dosovitskiy et al. (2021) in DeiT's sizes (Touvron et al. 2021), for any sizes.
//
// Keys and shapes of the parameters are those of timm's VisionTransformer (vit_tiny_patch16_224 and its larger
// sisters), whose checkpoints it reads. Softmax rows of attention are its attention maps.
#pragma once

#include <cstdint>

#include "dsl/tessera.hpp"

namespace tessera::models {

/// What can differ from one ViT to another.
struct VitSpec {
  std::int64_t image = 224;  ///< pixels down and across
  std::int64_t patch = 16;   ///< pixels of a patch, down and across; has to divide image
  std::int64_t channels = 3;
  std::int64_t width = 192;  ///< of a token
  std::int64_t heads = 3;    ///< has to divide width
  int depth = 12;            ///< blocks
  std::int64_t mlp = 4;      ///< the MLP's hidden layer is this many times as wide as a token
  std::int64_t classes = 1000;
};

/// Images [B, C, IH, IW] -> logits [B, CLASSES].
template <VitSpec S>
struct Vit : Module {
  static constexpr auto B = axis<"B">;  // the batch, known when the program runs
  static constexpr auto C = axis<"C", S.channels>;
  static constexpr auto P = axis<"P", S.patch>;                    // a patch is P x P pixels
  static constexpr auto GH = axis<"GH", Constant<S.image>{} / P>;  // patches down
  static constexpr auto GW = axis<"GW", Constant<S.image>{} / P>;  // patches across
  static constexpr auto IH = axis<"IH", GH * P>;                   // image height
  static constexpr auto IW = axis<"IW", GW * P>;                   // image width
  static constexpr auto N = axis<"N", GH * GW>;                    // patches
  static constexpr auto H = axis<"H", S.heads>;                    // heads
  static constexpr auto K = axis<"K", Constant<S.width>{} / H>;    // width of a head
  static constexpr auto D = axis<"D", H * K>;                      // width of a token
  static constexpr auto M = axis<"M", Constant<S.mlp>{} * D>;      // width of the MLP's hidden layer
  static constexpr auto CLASSES = axis<"CLASSES", S.classes>;
  static constexpr double epsilon = 1e-6;  // of the layer norms

  struct PatchEmbedding : Module {
    PatchConvolution<C, D, P> proj;
    TESSERA_MEMBERS(PatchEmbedding, proj)

    Tensor<B, N, D> forward(Tensor<B, C, IH, IW> images) const { return proj(images); }
  };

  struct Attention : Module {
    Linear<D, 3_c * D> qkv;
    Linear<D, D> proj;
    TESSERA_MEMBERS(Attention, qkv, proj)

    Tensor<B, N + 1_c, D> forward(Tensor<B, N + 1_c, D> x) const {
      const auto [q, k, v] = unstack<0>(rearrange<"b n (s h k) -> s b h n k">(qkv(x), "h"_is(H), "k"_is(K)), 3_c);
      const Tensor<B, H, N + 1_c, N + 1_c> scores = einsum<"b h i k, b h j k -> b h i j">(q, k) / sqrt(K);
      const auto mixed = einsum<"b h i j, b h j k -> b h i k">(softmax<-1>(scores), v);
      return proj(rearrange<"b h n k -> b n (h k)">(mixed));
    }
  };

  struct Mlp : Module {
    Linear<D, M> fc1;
    Linear<M, D> fc2;
    TESSERA_MEMBERS(Mlp, fc1, fc2)

    Tensor<B, N + 1_c, D> forward(Tensor<B, N + 1_c, D> x) const { return fc2(gelu(fc1(x))); }
  };

  struct Block : Module {
    LayerNorm<D> norm1{epsilon};
    Attention attn;
    LayerNorm<D> norm2{epsilon};
    Mlp mlp;
    TESSERA_MEMBERS(Block, norm1, attn, norm2, mlp)

    Tensor<B, N + 1_c, D> forward(Tensor<B, N + 1_c, D> x) const {
      const auto y = x + attn(norm1(x));
      return y + mlp(norm2(y));
    }
  };

  PatchEmbedding patch_embed;
  Parameter<1_c, 1_c, D> cls_token{normal(0, 0.02)};
  Parameter<1_c, N + 1_c, D> pos_embed{normal(0, 0.02)};
  Stack<Block, S.depth> blocks;
  LayerNorm<D> norm{epsilon};
  Linear<D, CLASSES> head;
  TESSERA_MEMBERS(Vit, patch_embed, cls_token, pos_embed, blocks, norm, head)

  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0.5, .deviation = 0.5}};

  Tensor<B, CLASSES> forward(Tensor<B, C, IH, IW> images) const {
    const auto token = repeat<"1 1 d -> b 1 d">(cls_token, "b"_is(B));
    const Tensor<B, N + 1_c, D> tokens = concat<1>(token, patch_embed(images)) + rearrange<"1 n d -> n d">(pos_embed);
    return head(take<1>(norm(blocks(tokens)), 0_c));
  }
};

using VitTiny = Vit<{.width = 192, .heads = 3}>;
using VitSmall = Vit<{.width = 384, .heads = 6}>;
using VitBase = Vit<{.width = 768, .heads = 12}>;
using VitLarge = Vit<{.width = 1024, .heads = 16, .depth = 24}>;

}  // namespace tessera::models
