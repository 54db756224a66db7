// vit: the Vision Transformer of Dosovitskiy et al. (2021) and its published variants, for any sizes.
//
// One declaration: a VitSpec says what differs. Keys and shapes of the parameters are those of timm's VisionTransformer
// (vit_tiny_patch16_224 and its larger sisters), whose checkpoints it reads; what a variant lacks has no keys. Softmax
// rows of attention are its attention maps.
#pragma once

#include <cstdint>
#include <type_traits>

#include "dsl/tessera.hpp"

namespace tessera::models {

/// Pixels down and across; one number is a square.
struct Extent {
  std::int64_t height, width;

  constexpr Extent(std::int64_t side) : height(side), width(side) {}
  constexpr Extent(std::int64_t down, std::int64_t across) : height(down), width(across) {}
};

/// How a token knows where it stands.
enum class Positions : std::uint8_t {
  learned,         ///< key pos_embed
  sinusoidal,      ///< a fixed table over the tokens in their order: Vaswani et al. 2017, section 3.5
  grid,            ///< a fixed table over rows and columns, which only patches have: Chen, Xie, He 2021 (MoCo v3)
  grid_inclusive,  ///< the same with the rates of Beyer et al. 2022
};

/// Where the two layer norms of a block stand.
enum class Norms : std::uint8_t {
  before,  ///< x + f(norm(x)): Dosovitskiy et al. 2021
  after,   ///< x + norm(f(x)): Swin v2; timm's ResPostBlock
  on_sum,  ///< norm(x + f(x)): Vaswani et al. 2017
};

/// Between the two layers of an MLP.
enum class Activation : std::uint8_t {
  gelu,       ///< with the exact error function
  gelu_tanh,  ///< GELU's approximation by tanh
  relu,
  silu,
  swiglu,  ///< silu(a) * b of two maps a and b: Shazeer 2020. Packed as timm's SwiGLUPacked: fc1 makes both, a first
};

/// How tokens become one vector.
enum class Pooling : std::uint8_t {
  class_token,  ///< its row
  mean,         ///< the mean of the patches; class token and registers do not count
};

/// Where the last layer norm stands.
enum class FinalNorm : std::uint8_t {
  before_pooling,  ///< over all tokens, key norm
  after_pooling,   ///< over the pooled vector, key fc_norm
  none,
};

/// What can differ from one ViT to another. The defaults are those of ViT-Ti/16.
struct VitSpec {
  Extent image = 224;
  Extent patch = 16;  ///< has to divide image
  std::int64_t channels = 3;
  std::int64_t width = 192;  ///< of a token
  std::int64_t heads = 3;    ///< has to divide width
  int depth = 12;            ///< blocks
  std::int64_t mlp = 4;      ///< the MLP's hidden layer is this many times as wide as a token
  std::int64_t classes = 1000;

  std::int64_t hidden = 0;  ///< width of the MLP's hidden layer, where it is no multiple of width: then mlp has no say
  bool class_token = true;
  std::int64_t registers = 0;  ///< further learned tokens, between class token and patches: Darcet et al. 2024
  Positions positions = Positions::learned;
  bool patch_positions = false;  ///< only patches have positions, not the tokens before them (timm's no_embed_class)
  Norms norms = Norms::before;
  bool qkv_bias = true;
  bool qk_norm = false;    ///< layer norms of each head's queries and keys: Dehghani et al. 2023
  double layer_scale = 0;  ///< start of the factors on each branch (Touvron et al. 2021, CaiT); 0: there are none
  Activation activation = Activation::gelu;
  FinalNorm final_norm = FinalNorm::before_pooling;
  Pooling pooling = Pooling::class_token;
  std::int64_t representation = 0;  ///< width of a layer with tanh before the head; 0: there is none
  double epsilon = 1e-6;            ///< of the layer norms

  // What training leaves out at random; evaluation leaves out nothing.
  double dropout = 0;            ///< of tokens with their positions, of what attention and both layers of the MLP give
  double attention_dropout = 0;  ///< of attention's probabilities
  double drop_path = 0;          ///< of whole branches, the same share in each block: all blocks are one declaration
};

/// Images [B, C, IH, IW] -> logits [B, CLASSES].
template <VitSpec S>
struct Vit : Module {
  static constexpr bool has_what_is_pooled = S.class_token || S.pooling == Pooling::mean;
  static_assert(has_what_is_pooled, "a ViT without a class token is pooled by Pooling::mean");

  static constexpr auto B = axis<"B">;  // the batch, known when the program runs
  static constexpr auto C = axis<"C", S.channels>;
  static constexpr auto P = axis<"P", S.patch.height>;  // a patch is P x Q pixels, and Q is P where it is square
  static constexpr auto Q = [] {
    if constexpr (S.patch.height == S.patch.width)
      return P;
    else
      return axis<"Q", S.patch.width>;
  }();
  static constexpr auto GH = axis<"GH", Constant<S.image.height>{} / P>;  // patches down
  static constexpr auto GW = axis<"GW", Constant<S.image.width>{} / Q>;   // patches across
  static constexpr auto IH = axis<"IH", GH * P>;                          // image height
  static constexpr auto IW = axis<"IW", GW * Q>;                          // image width
  static constexpr auto N = axis<"N", GH * GW>;                           // patches
  static constexpr auto R = [] {                                          // registers
    if constexpr (S.registers == 0)
      return 0_c;
    else
      return axis<"R", S.registers>;
  }();
  static constexpr auto FRONT = Constant<S.class_token>{} + R;   // tokens before the patches
  static constexpr auto T = FRONT + N;                           // tokens
  static constexpr auto H = axis<"H", S.heads>;                  // heads
  static constexpr auto K = axis<"K", Constant<S.width>{} / H>;  // width of a head
  static constexpr auto D = axis<"D", H * K>;                    // width of a token
  static constexpr auto M = [] {                                 // width of the MLP's hidden layer
    if constexpr (S.hidden == 0)
      return axis<"M", Constant<S.mlp>{} * D>;
    else
      return axis<"M", S.hidden>;
  }();
  static constexpr auto E = [] {  // width of what the head sees
    if constexpr (S.representation == 0)
      return D;
    else
      return axis<"E", S.representation>;
  }();
  static constexpr auto CLASSES = axis<"CLASSES", S.classes>;

  using Tokens = Tensor<B, T, D>;

  struct PatchEmbedding : Module {
    PatchConvolution<C, D, P, Q> proj;
    TESSERA_MEMBERS(PatchEmbedding, proj)

    Tensor<B, N, D> forward(Tensor<B, C, IH, IW> images) const { return proj(images); }
  };

  struct Attention : Module {
    std::conditional_t<S.qkv_bias, Linear<D, 3_c * D>, LinearWithoutBias<D, 3_c * D>> qkv;
    If<S.qk_norm, LayerNorm<K>> q_norm{S.epsilon}, k_norm{S.epsilon};
    Linear<D, D> proj;
    TESSERA_MEMBERS(Attention, qkv, q_norm, k_norm, proj)

    Tokens forward(Tokens x) const {
      const auto [q, k, v] = unstack<0>(rearrange<"b n (s h k) -> s b h n k">(qkv(x), "h"_is(H), "k"_is(K)), 3_c);
      const Tensor<B, H, T, K> queries = q_norm(q);
      const Tensor<B, H, T, K> keys = k_norm(k);
      const Tensor<B, H, T, T> scores = einsum<"b h i k, b h j k -> b h i j">(queries, keys) / sqrt(K);
      const auto probabilities = dropout<S.attention_dropout>(softmax<-1>(scores));
      const auto mixed = einsum<"b h i j, b h j k -> b h i k">(probabilities, v);
      return dropout<S.dropout>(proj(rearrange<"b h n k -> b n (h k)">(mixed)));
    }
  };

  struct Mlp : Module {
    static constexpr bool gated = S.activation == Activation::swiglu;

    std::conditional_t<gated, Linear<D, 2_c * M>, Linear<D, M>> fc1;
    Linear<M, D> fc2;
    TESSERA_MEMBERS(Mlp, fc1, fc2)

    Tokens forward(Tokens x) const {
      const auto inner = dropout<S.dropout>(activated(fc1(x)));
      return dropout<S.dropout>(fc2(inner));
    }

    template <class X>
    static Tensor<B, T, M> activated(const X& x) {
      if constexpr (S.activation == Activation::gelu) {
        return gelu(x);
      } else if constexpr (S.activation == Activation::gelu_tanh) {
        return gelu_tanh(x);
      } else if constexpr (S.activation == Activation::relu) {
        return relu(x);
      } else if constexpr (S.activation == Activation::silu) {
        return silu(x);
      } else {
        const auto [gate, value] = chunk<-1>(x, 2_c);
        return silu(gate) * value;
      }
    }
  };

  /// A factor for each of a token's numbers.
  struct LayerScale : Module {
    Parameter<D> gamma{constant(S.layer_scale)};
    TESSERA_MEMBERS(LayerScale, gamma)

    Tokens forward(Tokens x) const { return x * gamma; }
  };

  struct Block : Module {
    using Scale = If<S.layer_scale != 0, LayerScale>;

    LayerNorm<D> norm1{S.epsilon};
    Attention attn;
    Scale ls1;
    LayerNorm<D> norm2{S.epsilon};
    Mlp mlp;
    Scale ls2;
    TESSERA_MEMBERS(Block, norm1, attn, ls1, norm2, mlp, ls2)

    Tokens forward(Tokens x) const {
      const Tokens y = with_branch(x, norm1, attn, ls1);
      return with_branch(y, norm2, mlp, ls2);
    }

    template <class Branch>
    static Tokens with_branch(const Tokens& x, const LayerNorm<D>& norm, const Branch& f, const Scale& scale) {
      if constexpr (S.norms == Norms::before)
        return x + drop_path<S.drop_path>(scale(f(norm(x))));
      else if constexpr (S.norms == Norms::after)
        return x + drop_path<S.drop_path>(scale(norm(f(x))));
      else
        return norm(x + drop_path<S.drop_path>(scale(f(x))));
    }
  };

  /// timm's key for the layer before the head, whose activation has no parameters.
  struct Representation : Module {
    Linear<D, E> fc;
    TESSERA_MEMBERS(Representation, fc)

    Tensor<B, E> forward(Tensor<B, D> x) const { return tanh(fc(x)); }
  };

  static constexpr bool in_grid = S.positions == Positions::grid || S.positions == Positions::grid_inclusive;
  static constexpr bool patch_positions = S.patch_positions || in_grid;
  static constexpr auto POSITIONS = [] {
    if constexpr (patch_positions)
      return N;
    else
      return T;
  }();

  PatchEmbedding patch_embed;
  If<S.class_token, Parameter<1_c, 1_c, D>> cls_token{normal(0, 0.02)};
  If<S.registers != 0, Parameter<1_c, R, D>> reg_token{normal(0, 0.02)};
  If<S.positions == Positions::learned, Parameter<1_c, POSITIONS, D>> pos_embed{normal(0, 0.02)};
  Stack<Block, S.depth> blocks;
  If<S.final_norm == FinalNorm::before_pooling, LayerNorm<D>> norm{S.epsilon};
  If<S.final_norm == FinalNorm::after_pooling, LayerNorm<D>> fc_norm{S.epsilon};
  If<S.representation != 0, Representation> pre_logits;
  Linear<E, CLASSES> head;
  TESSERA_MEMBERS(Vit, patch_embed, cls_token, reg_token, pos_embed, blocks, norm, fc_norm, pre_logits, head)

  /// Preprocessing as that of timm's vit_*_patch16_224.augreg_in21k_ft_in1k.
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001},
                                 .input = {.mean = 0.5, .deviation = 0.5, .crop = 0.9}};

  Tensor<B, CLASSES> forward(Tensor<B, C, IH, IW> images) const {
    const Tokens tokens = dropout<S.dropout>(embedded(patch_embed(images)));
    return head(pre_logits(fc_norm(pooled(norm(blocks(tokens))))));
  }

 private:
  /// Patches with the tokens before them and with positions.
  template <class X>
  Tokens embedded(const X& patches) const {
    if constexpr (patch_positions)
      return with_front(with_positions(patches));
    else
      return with_positions(with_front(patches));
  }

  template <class X>
  auto with_positions(const X& x) const {
    if constexpr (S.positions == Positions::learned)
      return x + rearrange<"1 n d -> n d">(pos_embed);
    else if constexpr (S.positions == Positions::sinusoidal)
      return x + sinusoidal<POSITIONS, D>();
    else
      return x + sinusoidal_2d<GH, GW, D, S.positions == Positions::grid_inclusive>();
  }

  template <class X>
  auto with_front(const X& x) const {
    return with_class_token(with_registers(x));
  }

  template <class X>
  auto with_registers(const X& x) const {
    if constexpr (S.registers == 0) {
      return x;
    } else {
      const auto registers = repeat<"1 r d -> b r d">(reg_token, "b"_is(B));
      return concat<1>(registers, x);
    }
  }

  template <class X>
  auto with_class_token(const X& x) const {
    if constexpr (!S.class_token) {
      return x;
    } else {
      const auto token = repeat<"1 1 d -> b 1 d">(cls_token, "b"_is(B));
      return concat<1>(token, x);
    }
  }

  Tensor<B, D> pooled(const Tokens& tokens) const {
    if constexpr (S.pooling == Pooling::class_token)
      return take<1>(tokens, 0_c);
    else if constexpr (S.class_token || S.registers != 0)
      return mean<1>(slice<1>(tokens, FRONT, N));
    else
      return mean<1>(tokens);
  }
};

/// ViT and DeiT (Touvron et al. 2021), which are the same models, trained in other ways.
using VitTiny = Vit<{.width = 192, .heads = 3}>;
using VitSmall = Vit<{.width = 384, .heads = 6}>;
using VitBase = Vit<{.width = 768, .heads = 12}>;
using VitLarge = Vit<{.width = 1024, .heads = 16, .depth = 24}>;
using VitHuge = Vit<{.patch = 14, .width = 1280, .heads = 16, .depth = 32}>;

/// Beyer, Zhai, Kolesnikov 2022, "Better plain ViT baselines for ImageNet-1k".
using SimpleVitSmall = Vit<{
    .width = 384, .heads = 6, .class_token = false, .positions = Positions::grid_inclusive, .pooling = Pooling::mean}>;

/// DINOv2 with registers: Oquab et al. 2023, Darcet et al. 2024; timm's vit_*_patch14_reg4_dinov2, with a head.
constexpr VitSpec dinov2(std::int64_t width, std::int64_t heads, int depth) {
  return {.image = 518,
          .patch = 14,
          .width = width,
          .heads = heads,
          .depth = depth,
          .registers = 4,
          .patch_positions = true,
          .layer_scale = 1e-5};
}
constexpr VitSpec dinov2_giant() {
  VitSpec spec = dinov2(1536, 24, 40);
  spec.activation = Activation::swiglu;
  spec.hidden = 4096;
  return spec;
}
using Dinov2Small = Vit<dinov2(384, 6, 12)>;
using Dinov2Base = Vit<dinov2(768, 12, 12)>;
using Dinov2Large = Vit<dinov2(1024, 16, 24)>;
using Dinov2Giant = Vit<dinov2_giant()>;

}  // namespace tessera::models
