// vit_diff: blocks with the attention of Ye et al. 2024 (Differential Transformer), with keys of timm's DiffAttention.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "models/vit.hpp"

namespace tessera::models {

/// softmax(q1 k1) - lambda softmax(q2 k2) of values, normed: what both blocks do with their queries, keys and values. A
/// block is given where its lambda starts.
template <class V>
struct Difference : Part {
  static constexpr VitSpec S = V::spec;
  static constexpr auto J = axis<"J", Constant<S.width>{} / (2_c * V::H)>;  // width of a query
  static constexpr auto K = axis<"K", 2_c * J>;                             // width of a value
  static constexpr auto A = axis<"A", V::H * K>;
  using Scores = Tensor<V::B, V::H, V::T, V::T>;

  Parameter<J> lambda_q1{normal(0, 0.1)}, lambda_k1{normal(0, 0.1)};
  Parameter<J> lambda_q2{normal(0, 0.1)}, lambda_k2{normal(0, 0.1)};
  RmsNorm<K> sub_norm{1e-5};
  TESSERA_MEMBERS(Difference, lambda_q1, lambda_k1, lambda_q2, lambda_k2, sub_norm)

  Tensor<> start;

  Tensor<V::B, V::T, A> forward(Tensor<V::B, V::T, 3_c * A> qkv) const {
    const auto [q, k, v] = chunk<-1>(qkv, 3_c);
    const auto [q1, q2] = unstack<0>(rearrange<"b n (h s j) -> s b h n j">(q, "h"_is(V::H), "j"_is(J)), 2_c);
    const auto [k1, k2] = unstack<0>(rearrange<"b n (h s j) -> s b h n j">(k, "h"_is(V::H), "j"_is(J)), 2_c);
    const auto values = rearrange<"b n (h k) -> b h n k">(v, "h"_is(V::H), "k"_is(K));
    const Tensor<> factor = exp(sum(lambda_q1 * lambda_k1)) - exp(sum(lambda_q2 * lambda_k2)) + start;
    const Scores difference = probabilities(q1, k1) - probabilities(q2, k2) * factor;
    const auto mixed = sub_norm(einsum<"b h i j, b h j k -> b h i k">(difference, values)) * (1.0 - start);
    return rearrange<"b h n k -> b n (h k)">(mixed);
  }

 private:
  template <class Q>
  static Scores probabilities(const Q& q, const Q& k) {
    const Scores scores = einsum<"b h i j, b h t j -> b h i t">(q, k) / sqrt(J);
    return dropout<S.attention_dropout>(softmax<-1>(scores));
  }
};

/// What all layers share: layer l's lambda starts at 0.8 - 0.6 exp(-0.3 l).
template <class V>
struct DifferenceStarts : Part {
  TESSERA_MEMBERS(DifferenceStarts)

  template <class Blocks, class X>
  auto forward(const Blocks& blocks, const X& x) const {
    constexpr int depth = V::spec.depth;
    const auto starts = table<axis<"L", depth>>("differential_" + std::to_string(depth), [] {
      std::vector<double> data;
      for (int layer = 0; layer < depth; ++layer) data.push_back(0.8 - 0.6 * std::exp(-0.3 * layer));
      return data;
    });
    return blocks(x, starts, [](auto& block, const auto& own) { block.difference().start = own; });
  }
};

template <class V>
struct DifferentialAttention : Module {
  static constexpr VitSpec S = V::spec;
  static constexpr auto A = Difference<V>::A;

  std::conditional_t<S.qkv_bias, Linear<V::D, 3_c * A>, LinearWithoutBias<V::D, 3_c * A>> qkv;
  Difference<V> difference;
  Linear<A, V::D> proj;
  TESSERA_MEMBERS(DifferentialAttention, qkv, difference, proj)

  typename V::Tokens forward(typename V::Tokens x) const { return dropout<S.dropout>(proj(difference(qkv(x)))); }
};

template <class V>
struct DifferentialBlock : VitBlock<V, DifferentialAttention<V>> {
  using Shared = DifferenceStarts<V>;
  Difference<V>& difference() { return this->attn.difference; }
};

/// Beside its MLP, of one map and to one map: timm's DiffParallelScalingBlock.
template <class V>
struct DifferentialParallelBlock : Module {
  static constexpr VitSpec S = V::spec;
  static constexpr auto A = Difference<V>::A;
  using Tokens = typename V::Tokens;
  using Shared = DifferenceStarts<V>;

  typename V::template Norm<V::D> in_norm{S.epsilon};
  Linear<V::D, V::M + 3_c * A> in_proj;
  Difference<V> attended;
  Linear<A + V::M, V::D> out_proj;
  If<S.layer_scale != 0, LayerScale<V>> ls;
  TESSERA_MEMBERS(DifferentialParallelBlock, in_norm, in_proj, attended, out_proj, ls)

  Difference<V>& difference() { return attended; }

  Tokens forward(Tokens x) const {
    const auto made = in_proj(in_norm(x));
    const Tensor<V::B, V::T, 3_c * A> qkv = slice<-1>(made, V::M, 3_c * A);
    const auto inner = dropout<S.dropout>(activated<S.activation>(slice<-1>(made, 0_c, V::M)));
    return x + drop_path<S.drop_path>(ls(out_proj(concat<-1>(attended(qkv), inner))));
  }
};

}  // namespace tessera::models
