// vit_parallel: blocks whose branches stand side by side, with keys of timm's.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

/// One map makes queries, keys, values and the MLP's hidden layer, and both branches are added at once: Dehghani et al.
/// 2023 (ViT-22B), timm's ParallelScalingBlock. Norms of queries and keys are those of a head.
template <class V>
struct ParallelScalingBlock : Module {
  static constexpr VitSpec S = V::spec;
  using Tokens = typename V::Tokens;
  using Norm = typename V::template Norm<V::D>;
  using HeadNorm = If<S.qk_norm, typename V::template Norm<V::K>>;
  using In =
      std::conditional_t<S.qkv_bias, Linear<V::D, V::M + 3_c * V::A>, LinearWithoutBias<V::D, V::M + 3_c * V::A>>;

  Norm in_norm{S.epsilon};
  In in_proj;
  If<!S.qkv_bias, Parameter<V::M>> mlp_bias{constant(0)};
  HeadNorm q_norm{S.epsilon}, k_norm{S.epsilon};
  Linear<V::A, V::D> attn_out_proj;
  Linear<V::M, V::D> mlp_out_proj;
  If<S.layer_scale != 0, LayerScale<V>> ls;
  TESSERA_MEMBERS(ParallelScalingBlock, in_norm, in_proj, mlp_bias, q_norm, k_norm, attn_out_proj, mlp_out_proj, ls)

  Tokens forward(Tokens x) const {
    const auto made = in_proj(in_norm(x));
    const Tensor<V::B, V::T, V::M> hidden = slice<-1>(made, 0_c, V::M);
    const Tensor<V::B, V::T, 3_c * V::A> qkv = slice<-1>(made, V::M, 3_c * V::A);
    const auto [q, k, v] = unstack<0>(rearrange<"b n (s h k) -> s b h n k">(qkv, "h"_is(V::H), "k"_is(V::K)), 3_c);
    const typename V::Heads queries = q_norm(q), keys = k_norm(k);
    const Tensor<V::B, V::H, V::T, V::T> scores = einsum<"b h i k, b h j k -> b h i j">(queries, keys) / sqrt(V::K);
    const auto probabilities = dropout<S.attention_dropout>(softmax<-1>(scores));
    const auto mixed = einsum<"b h i j, b h j k -> b h i k">(probabilities, v);
    const Tokens attended = attn_out_proj(rearrange<"b h n k -> b n (h k)">(mixed));
    const auto inner = dropout<S.dropout>(activated<S.activation>(biased(hidden)));
    return x + drop_path<S.drop_path>(ls(attended + mlp_out_proj(inner)));
  }

 private:
  auto biased(const Tensor<V::B, V::T, V::M>& hidden) const {
    if constexpr (S.qkv_bias)
      return hidden;
    else
      return hidden + mlp_bias;
  }
};

/// Two attentions added at once, then two MLPs: Touvron et al. 2022 ("Three things everyone should know about Vision
/// Transformers"), timm's ParallelThingsBlock.
template <class V, std::size_t count = 2>
struct ParallelThingsBlock : Module {
  static constexpr VitSpec S = V::spec;
  using Tokens = typename V::Tokens;
  using Norm = typename V::template Norm<V::D>;
  using Scale = If<S.layer_scale != 0, LayerScale<V>>;

  struct AttentionBranch : Module {
    Norm norm{S.epsilon};
    Attention<V> attn;
    Scale ls;
    TESSERA_MEMBERS(AttentionBranch, norm, attn, ls)

    Tokens forward(Tokens x) const { return drop_path<S.drop_path>(ls(attn(norm(x)))); }
  };
  struct MlpBranch : Module {
    Norm norm{S.epsilon};
    Mlp<V> mlp;
    Scale ls;
    TESSERA_MEMBERS(MlpBranch, norm, mlp, ls)

    Tokens forward(Tokens x) const { return drop_path<S.drop_path>(ls(mlp(norm(x)))); }
  };

  List<AttentionBranch, count> attns;
  List<MlpBranch, count> ffns;
  TESSERA_MEMBERS(ParallelThingsBlock, attns, ffns)

  Tokens forward(Tokens x) const { return beside(beside(x, attns), ffns); }

 private:
  template <class Branches>
  static Tokens beside(const Tokens& x, const Branches& branches) {
    Tokens sum = branches[0](x);
    for (std::size_t i = 1; i < count; ++i) sum = sum + branches[i](x);
    return x + sum;
  }
};

}  // namespace tessera::models
