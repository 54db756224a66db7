// vit_cifar: a Vision Transformer for 32x32 photographs, built on PyTorch's fused multi-head attention.
//
// Keys and shapes of the parameters are those of the notebook's model: its attention is torch.nn.MultiheadAttention,
// with one weight for queries, keys and values. As in the notebook, the MLP drops before its activation.
#pragma once

#include <cmath>
#include <cstdint>

#include "dsl/tessera.hpp"

namespace tessera::models {

/// What can differ from one to another.
struct CifarVitSpec {
  std::int64_t image = 32;  ///< pixels down and across
  std::int64_t patch = 4;   ///< pixels of a patch, down and across; has to divide image
  std::int64_t channels = 3;
  std::int64_t width = 256;  ///< of a token
  std::int64_t heads = 8;    ///< has to divide width
  int layers = 6;
  std::int64_t mlp = 512;  ///< width of the MLP's hidden layer
  std::int64_t classes = 10;
  double dropout = 0.2;  ///< of tokens, of attention's probabilities, and of what both layers of the MLP give
};

/// Images [B, C, IH, IW] -> logits [B, CLASSES].
template <CifarVitSpec S>
struct CifarVit : Module {
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
  static constexpr auto M = axis<"M", S.mlp>;                      // width of the MLP's hidden layer
  static constexpr auto CLASSES = axis<"CLASSES", S.classes>;

  /// PyTorch equivalent: torch.nn.MultiheadAttention(D, H, dropout=S.dropout, batch_first=True)(x, x, x)[0].
  struct MultiheadAttention : Module {
    static double bound() { return std::sqrt(6.0 / static_cast<double>(4 * S.width)); }  // Glorot and Bengio 2010

    Parameter<3_c * D, D> in_proj_weight{with_decay(uniform(-bound(), bound()))};
    Parameter<3_c * D> in_proj_bias;
    Linear<D, D> out_proj;
    TESSERA_MEMBERS(MultiheadAttention, in_proj_weight, in_proj_bias, out_proj)

    Tensor<B, N + 1_c, D> forward(Tensor<B, N + 1_c, D> x) const {
      const auto qkv = linear(x, in_proj_weight) + in_proj_bias;
      const auto [q, k, v] = unstack<0>(rearrange<"b n (s h k) -> s b h n k">(qkv, "h"_is(H), "k"_is(K)), 3_c);
      const Tensor<B, H, N + 1_c, N + 1_c> scores = einsum<"b h i k, b h j k -> b h i j">(q, k) / sqrt(K);
      const auto probabilities = dropout<S.dropout>(softmax<-1>(scores));
      const auto mixed = einsum<"b h i j, b h j k -> b h i k">(probabilities, v);
      return out_proj(rearrange<"b h n k -> b n (h k)">(mixed));
    }
  };

  struct FeedForward : Module {
    Linear<D, M> linear1;
    Linear<M, D> linear2;
    TESSERA_MEMBERS(FeedForward, linear1, linear2)

    Tensor<B, N + 1_c, D> forward(Tensor<B, N + 1_c, D> x) const {
      const auto inner = gelu(dropout<S.dropout>(linear1(x)));
      return dropout<S.dropout>(linear2(inner));
    }
  };

  struct Block : Module {
    LayerNorm<D> norm1;
    MultiheadAttention attention;
    LayerNorm<D> norm2;
    FeedForward ffn;
    TESSERA_MEMBERS(Block, norm1, attention, norm2, ffn)

    Tensor<B, N + 1_c, D> forward(Tensor<B, N + 1_c, D> x) const {
      const auto y = x + attention(norm1(x));
      return y + ffn(norm2(y));
    }
  };

  Linear<C * P * P, D> patch_embed;
  Parameter<1_c, 1_c, D> cls_token{normal(0, 1)};
  Parameter<1_c, N + 1_c, D> pos_embed{normal(0, 1)};
  Stack<Block, S.layers> transformer_blocks;
  LayerNorm<D> norm;
  Linear<D, CLASSES> head;
  TESSERA_MEMBERS(CifarVit, patch_embed, cls_token, pos_embed, transformer_blocks, norm, head)

  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0.5, .deviation = 0.5}};

  Tensor<B, CLASSES> forward(Tensor<B, C, IH, IW> images) const {
    const Tensor<B, N, C * P * P> patches =
        rearrange<"b c (gh p) (gw q) -> b (gh gw) (c p q)">(images, "p"_is(P), "q"_is(P));
    const auto token = repeat<"1 1 d -> b 1 d">(cls_token, "b"_is(B));
    const Tensor<B, N + 1_c, D> tokens = concat<1>(token, patch_embed(patches)) + rearrange<"1 n d -> n d">(pos_embed);
    return head(take<1>(norm(transformer_blocks(dropout<S.dropout>(tokens))), 0_c));
  }
};

}  // namespace tessera::models
