// cait: "Going deeper with Image Transformers", Touvron et al. 2021, with keys of timm's Cait.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

/// Scores, and what softmax makes of them, are mixed among the heads: Shazeer et al. 2020.
template <class V>
struct TalkingHeads : Module {
  static constexpr VitSpec S = V::spec;
  using Scores = Tensor<V::B, V::H, V::T, V::T>;

  FusedQkv<V> parts;
  Linear<V::A, V::D> proj;
  Linear<V::H, V::H> proj_l, proj_w;
  TESSERA_MEMBERS(TalkingHeads, parts, proj, proj_l, proj_w)

  typename V::Tokens forward(typename V::Tokens x) const {
    const auto [q, k, v] = parts(x);
    const Scores scores = einsum<"b h i k, b h j k -> b h i j">(q, k) / sqrt(V::K);
    const Scores probabilities = talk(softmax<-1>(talk(scores, proj_l)), proj_w);
    const auto mixed = einsum<"b h i j, b h j k -> b h i k">(dropout<S.attention_dropout>(probabilities), v);
    return dropout<S.dropout>(proj(rearrange<"b h n k -> b n (h k)">(mixed)));
  }

 private:
  /// Maps the heads of each pair of tokens. Keys stay the last axis in memory, along which softmax and products run.
  static Scores talk(const Scores& x, const Linear<V::H, V::H>& heads) {
    return einsum<"h g, b g i j -> b h i j">(heads.weight, x) +
           repeat<"h -> h i j">(heads.bias, "i"_is(V::T), "j"_is(V::T));
  }
};

template <class V>
using CaitBlock = GammaBlock<V, TalkingHeads<V>>;

/// The class token looks at itself and at the patches.
template <class V>
struct ClassAttention : Module {
  static constexpr auto SEEN = 1_c + V::N;
  static constexpr VitSpec S = V::spec;

  Linear<V::D, V::A> q, k, v;
  Linear<V::A, V::D> proj;
  TESSERA_MEMBERS(ClassAttention, q, k, v, proj)

  Tensor<V::B, 1_c, V::D> forward(Tensor<V::B, SEEN, V::D> x) const {
    const auto query = rearrange<"b (h k) -> b h k">(q(take<1>(x, 0_c)), "h"_is(V::H), "k"_is(V::K));
    const auto keys = rearrange<"b n (h k) -> b h n k">(k(x), "h"_is(V::H), "k"_is(V::K));
    const auto values = rearrange<"b n (h k) -> b h n k">(v(x), "h"_is(V::H), "k"_is(V::K));
    const auto probabilities = softmax<-1>(einsum<"b h k, b h j k -> b h j">(query, keys) / sqrt(V::K));
    const auto mixed = einsum<"b h j, b h j k -> b h k">(dropout<S.attention_dropout>(probabilities), values);
    return dropout<S.dropout>(proj(rearrange<"b h k -> b 1 (h k)">(mixed)));
  }
};

/// A block of the class token alone; the patches it is given stay as they are.
template <class V>
struct ClassBlock : Module {
  static constexpr VitSpec S = V::spec;
  using Token = Tensor<V::B, 1_c, V::D>;

  LayerNorm<V::D> norm1{S.epsilon};
  ClassAttention<V> attn;
  Parameter<V::D> gamma_1{constant(S.layer_scale)};
  LayerNorm<V::D> norm2{S.epsilon};
  Mlp<V> mlp;
  Parameter<V::D> gamma_2{constant(S.layer_scale)};
  TESSERA_MEMBERS(ClassBlock, norm1, attn, gamma_1, norm2, mlp, gamma_2)

  Tensor<V::B, V::N, V::D> patches;

  Token forward(Token token) const {
    const Token y = token + attn(norm1(concat<1>(token, patches))) * gamma_1;
    return y + Token(mlp(norm2(y))) * gamma_2;
  }
};

/// Images [B, C, IH, IW] -> logits [B, CLASSES]. The spec has no class token: the class blocks bring it.
template <VitSpec S, int class_depth = 2>
struct Cait : Module, detail::VitRecipe {
  static_assert(!S.class_token, "CaiT's class token comes after the blocks of the patches");

  using V = VitAxes<S>;
  using Patches = Tensor<V::B, V::N, V::D>;
  static constexpr auto CLASSES = axis<"CLASSES", S.classes>;

  struct PatchEmbedding : Module {
    PatchConvolution<V::C, V::D, V::P, V::Q> proj;
    TESSERA_MEMBERS(PatchEmbedding, proj)

    Patches forward(Tensor<V::B, V::C, V::IH, V::IW> images) const { return proj(images); }
  };

  PatchEmbedding patch_embed;
  Parameter<1_c, 1_c, V::D> cls_token{normal(0, 0.02)};
  Parameter<1_c, V::N, V::D> pos_embed{normal(0, 0.02)};
  Stack<CaitBlock<V>, S.depth> blocks;
  Stack<ClassBlock<V>, class_depth> blocks_token_only;
  LayerNorm<V::D> norm{S.epsilon};
  Linear<V::D, CLASSES> head;
  TESSERA_MEMBERS(Cait, patch_embed, cls_token, pos_embed, blocks, blocks_token_only, norm, head)

  Tensor<V::B, CLASSES> forward(Tensor<V::B, V::C, V::IH, V::IW> images) const {
    const Patches patches = blocks(patch_embed(images) + rearrange<"1 n d -> n d">(pos_embed));
    const auto token = repeat<"1 1 d -> b 1 d">(cls_token, "b"_is(V::B));
    const auto seen = blocks_token_only(token, [&](ClassBlock<V>& block) { block.patches = patches; });
    return head(norm(take<1>(seen, 0_c)));
  }
};

}  // namespace tessera::models
