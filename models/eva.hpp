// eva: blocks with rotary positions, as timm's Eva has them: EVA and EVA-02 (Fang et al. 2023), DINOv3 (Simeoni et al.
// 2025), RoPE-ViT (Heo et al. 2024), the Perception Encoder (Bolya et al. 2025).
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

/// A block whose factors on its branches are parameters of its own, keys gamma_1 and gamma_2, as BEiT's are.
template <class V, class Attn = Attention<V, QvBias<V>>, class Feed = Mlp<V>>
struct GammaBlock : Module {
  static constexpr VitSpec S = V::spec;
  using Tokens = typename V::Tokens;

  typename V::template Norm<V::D> norm1{S.epsilon};
  Attn attn;
  Parameter<V::D> gamma_1{constant(S.layer_scale)};
  typename V::template Norm<V::D> norm2{S.epsilon};
  Feed mlp;
  Parameter<V::D> gamma_2{constant(S.layer_scale)};
  TESSERA_MEMBERS(GammaBlock, norm1, attn, gamma_1, norm2, mlp, gamma_2)

  Tokens forward(Tokens x) const {
    const Tokens y = x + drop_path<S.drop_path>(attn(norm1(x)) * gamma_1);
    return y + drop_path<S.drop_path>(mlp(norm2(y)) * gamma_2);
  }
};

/// A factor on the branch of attention alone, key gamma_1: Sapiens2.
template <class V, class Attn = Attention<V>, class Feed = Mlp<V>>
struct AttentionGammaBlock : Module {
  static constexpr VitSpec S = V::spec;
  using Tokens = typename V::Tokens;

  typename V::template Norm<V::D> norm1{S.epsilon};
  Attn attn;
  Parameter<V::D> gamma_1{constant(S.layer_scale)};
  typename V::template Norm<V::D> norm2{S.epsilon};
  Feed mlp;
  TESSERA_MEMBERS(AttentionGammaBlock, norm1, attn, gamma_1, norm2, mlp)

  Tokens forward(Tokens x) const {
    const Tokens y = x + drop_path<S.drop_path>(attn(norm1(x)) * gamma_1);
    return y + drop_path<S.drop_path>(mlp(norm2(y)));
  }
};

/// EVA: ViT's, without a bias of keys.
template <class V>
using EvaBlock = VitBlock<V, Attention<V, QvBias<V>>>;

/// EVA-02 is pretrained on a grid of 16 x 16.
inline constexpr Rope eva02_rope{.rows = 16, .columns = 16};
/// Ti and S: packed SwiGLU (Activation::swiglu).
template <class V>
using Eva02SmallBlock = VitBlock<V, Attention<V, QvBias<V>, Rotary<V, eva02_rope>>>;
/// B and L: maps of their own, and a norm in the MLP.
template <class V, class Projection = Linear<V::A, V::D>>
using Eva02BlockWith = VitBlock<V, Attention<V, SeparateQkv<V>, Rotary<V, eva02_rope>, Projection>,
                                SwiGlu<V, typename V::template Norm<V::M>>>;
template <class V>
using Eva02Block = Eva02BlockWith<V>;
/// With a norm in attention as well.
template <class V>
using Eva02ClipBlock = Eva02BlockWith<V, NormedProjection<V>>;

inline constexpr Rope dinov3_rope{.temperature = 100, .pairs = RopePairs::halves, .places = RopePlaces::centres};
/// S to L, with biases of queries and values.
template <class V>
using Dinov3Block = GammaBlock<V, Attention<V, QvBias<V>, Rotary<V, dinov3_rope>>>;
/// Without them, or with an MLP of another kind: SwiGlu<V> in the larger ones.
template <class V, class Qkv = FusedQkv<V>, class Feed = Mlp<V>>
using Dinov3BlockWith = GammaBlock<V, Attention<V, Qkv, Rotary<V, dinov3_rope>>, Feed>;

/// timm's vit_*_rope_reg*_gap_256.
template <class V>
using RopeRegisterBlock = GammaBlock<V, Attention<V, QvBias<V>, Rotary<V, eva02_rope>>>;

/// The Perception Encoder, pretrained on a grid whose sides are this; rows and columns are counted from the offset.
template <std::int64_t side, std::int64_t offset>
inline constexpr Rope perception_rope{.columns_first = true, .offset = offset, .rows = side, .columns = side};
template <class V, std::int64_t side, std::int64_t offset>
using PerceptionBlock = VitBlock<V, Attention<V, FusedQkv<V>, Rotary<V, perception_rope<side, offset>>>>;
/// For language models: with factors on the branches.
template <class V, std::int64_t offset>
using PerceptionLanguageBlock = GammaBlock<V, Attention<V, FusedQkv<V>, Rotary<V, perception_rope<32, offset>>>>;

/// RoPE-ViT, axial.
template <class V>
using RopeVitBlock =
    GammaBlock<V, Attention<V, FusedQkv<V>, Rotary<V, Rope{.temperature = 100, .columns_first = true}>>>;

/// Rotary positions by frequencies that a block is given.
template <class V>
struct MixedRotary : Unplaced<V> {
  static constexpr auto F = Constant<V::K.value.value() / 2>{};
  TESSERA_MEMBERS(MixedRotary)

  Tensor<2_c, V::H, F> frequencies;

  typename V::Heads forward(typename V::Heads x) const {
    return rope_mixed<Rope{.columns_first = true}, V::GH, V::GW>(x, frequencies);
  }
};

/// RoPE-ViT, mixed: learned frequencies, one tensor for all layers, key rope.freqs.
template <class V>
struct RopeMixedBlock : GammaBlock<V, Attention<V, FusedQkv<V>, MixedRotary<V>>> {
  struct Frequencies : Module {
    Parameter<2_c, axis<"L", V::spec.depth>, V::H, MixedRotary<V>::F> freqs{normal(0, 0.5)};
    TESSERA_MEMBERS(Frequencies, freqs)

    auto forward() const { return rearrange<"c l h f -> l c h f">(freqs); }
  };
  struct Shared : Part {
    Frequencies rope;
    TESSERA_MEMBERS(Shared, rope)

    template <class Blocks, class X>
    auto forward(const Blocks& blocks, const X& x) const {
      return blocks(x, rope(), [](auto& block, const auto& own) { block.attn.places.frequencies = own; });
    }
  };
};

}  // namespace tessera::models
