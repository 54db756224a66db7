// swin_v2: Swin Transformer V2 of Liu et al. 2022, with keys and numbers of timm's models of that name.
//
// Windows, moves and stages are Swin's. Scores are cosines of queries and keys, and an MLP makes their biases of how
// far two tokens are from each other, so that weights go on to windows of another size. A branch is normalised where it
// ends, and tokens where they have been merged.
#pragma once

#include <cmath>
#include <cstdint>

#include "models/swin.hpp"

namespace tessera::models {

namespace detail {

/// x / sqrt(|x|^2 + 1e-24) along the last axis. PyTorch equivalent: torch.nn.functional.normalize(x, dim=-1), which
/// divides by max(|x|, 1e-12): the same where x is 0, and where |x| is far above 1e-12.
template <class X>
auto of_length_one(const X& x) {
  return x / expand_as(sqrt(sum<-1>(x * x) + 1e-24), x);
}

}  // namespace detail

/// Cosines of queries and keys times a factor for each head, 100 at most, and a bias between 0 and 16 that an MLP makes
/// of how far two tokens are from each other: Liu et al. 2022, sections 3.3 and 3.4.
template <class V>
struct ScoresByCosine : Part {
  static constexpr auto U = axis<"U", V::position_mlp>;

  Parameter<V::H, 1_c, 1_c> logit_scale{constant(std::log(10.0))};
  Sequential<Linear<2_c, U>, Relu, LinearWithoutBias<U, V::H>> cpb_mlp;
  TESSERA_MEMBERS(ScoresByCosine, logit_scale, cpb_mlp)

  typename V::Scores forward(const typename V::Heads& q, const typename V::Heads& k) const {
    const double largest = std::log(100.0);
    const auto factor = exp(where(less(logit_scale, largest), logit_scale, largest));
    const typename V::Heads scaled = detail::of_length_one(q) * expand_as(factor, q);
    const typename V::Scores cosines = einsum<"b w h i k, b w h j k -> b w h i j">(scaled, detail::of_length_one(k));
    const auto table = cpb_mlp(relative_log_positions<V::WH, V::WW>(down, across));
    return cosines + sigmoid(relative_position_bias<V::WH, V::WW>(table)) * 16;
  }

 private:
  /// What distances are measured by.
  static constexpr std::int64_t down = V::reach.height ? V::reach.height : V::WH.value.value();
  static constexpr std::int64_t across = V::reach.width ? V::reach.width : V::WW.value.value();
};

/// Queries, keys and values of windows, by one map; queries and values have a bias. One bias is made of both, which
/// inference folds.
template <class V>
struct WindowQvBias : Part {
  LinearWithoutBias<V::D, 3_c * V::D> qkv;
  Parameter<V::D> q_bias{constant(0)}, v_bias{constant(0)};
  TESSERA_MEMBERS(WindowQvBias, qkv, q_bias, v_bias)

  auto forward(typename V::Windows x) const {
    const auto bias = concat<0>(q_bias, v_bias * 0, v_bias);
    return unstack<0>(rearrange<"b w n (s h k) -> s b w h n k">(qkv(x) + bias, "h"_is(V::H), "k"_is(V::K)), 3_c);
  }
};

/// Attention and MLP, each normalised before it is added to its input. The norms' weights start at 0: a block begins as
/// the identity.
template <class V, bool moves>
struct SwinV2Block : Module {
  static constexpr VitSpec S = V::spec;
  using Map = typename V::Map;

  SwinV2Block() { norm1.weight.start = norm2.weight.start = constant(0); }

  WindowAttention<V, moves, ScoresByCosine, WindowQvBias> attn;
  LayerNorm<V::D> norm1{S.epsilon};
  Mlp<V> mlp;
  LayerNorm<V::D> norm2{S.epsilon};
  TESSERA_MEMBERS(SwinV2Block, attn, norm1, mlp, norm2)

  Map forward(Map x) const {
    const Map y = x + drop_path<S.drop_path>(norm1(attn(x)));
    return y + drop_path<S.drop_path>(norm2(mlp(y)));
  }
};

/// Four neighbours, column by column, become one token, which is normalised.
template <class From, class V>
struct PatchMergingV2 : Module {
  LinearWithoutBias<4_c * From::D, V::D> reduction;
  LayerNorm<V::D> norm{V::spec.epsilon};
  TESSERA_MEMBERS(PatchMergingV2, reduction, norm)

  typename V::Map forward(typename From::Map x) const {
    const auto pairs = rename<2>(rename<1>(x, V::GH * 2_c), V::GW * 2_c);
    return norm(reduction(rearrange<"b (y i) (x j) d -> b y x (j i d)">(pairs, "i"_is(2_c), "j"_is(2_c))));
  }
};

/// What its stages are made of.
struct SwinV2Parts {
  static constexpr bool measures_distances = true;
  template <class V, bool moves>
  using Block = SwinV2Block<V, moves>;
  template <class From, class V>
  using Merging = PatchMergingV2<From, V>;
};

/// Images [B, C, IH, IW] -> logits [B, CLASSES]; without classes, features [B, D].
template <SwinSpec S>
using SwinV2 = Swin<S, SwinV2Parts>;

using SwinV2Tiny = SwinV2<{.image = 256, .windows = {8, 8, 8, 8}}>;
using SwinV2Small = SwinV2<{.image = 256, .depths = {2, 2, 18, 2}, .windows = {8, 8, 8, 8}}>;
using SwinV2Base =
    SwinV2<{.image = 256, .width = 128, .heads = {4, 8, 16, 32}, .depths = {2, 2, 18, 2}, .windows = {8, 8, 8, 8}}>;

}  // namespace tessera::models
