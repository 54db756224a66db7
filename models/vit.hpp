// vit: the Vision Transformer of Dosovitskiy et al. (2021) and its published variants, for any sizes.
//
// A VitSpec says the sizes and what comes before and after the blocks; the block is a part that is chosen
// (vit_parts.hpp). Keys and shapes of the parameters are those of timm's models, whose checkpoints are read; what a
// variant lacks has no keys.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "models/vit_parts.hpp"

namespace tessera::models {

namespace detail {

/// Preprocessing as that of timm's vit_*_patch16_224.augreg_in21k_ft_in1k.
struct VitInput {
  static constexpr Preprocessing input{.mean = 0.5, .deviation = 0.5, .crop = 0.9};
};
/// And how it is trained: a model with classes.
struct VitRecipe {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = VitInput::input};
};

/// What a block wants to have once for all layers, as a part `Shared` whose call runs the layers; most want nothing.
struct NothingShared : Part {
  TESSERA_MEMBERS(NothingShared)

  template <class Blocks, class X>
  auto forward(const Blocks& blocks, const X& x) const {
    return blocks(x);
  }
};
template <class Block>
struct SharedOf {
  using type = NothingShared;
};
template <class Block>
  requires requires { typename Block::Shared; }
struct SharedOf<Block> {
  using type = typename Block::Shared;
};

/// The blocks of a model: alike, or Stacks of several kinds. With each of the chosen layers a stack ends.
template <class Block, int depth, Layers chosen>
struct BlocksOf {
  template <int... i>
  static Stacks<Stack<Block, chosen.blocks(i)>...> ending(std::integer_sequence<int, i...>);
  using type = decltype(ending(std::make_integer_sequence<int, chosen.count()>()));
};
template <class Block, int depth>
struct BlocksOf<Block, depth, Layers{}> {
  using type = Stack<Block, depth>;
};
template <class... Parts, int depth, Layers chosen>
  requires(chosen.count() != 0)
struct BlocksOf<Stacks<Parts...>, depth, chosen> {
  using type = Stacks<Parts...>;
  static_assert(type::count == depth, "the stacks of a ViT have as many blocks as its spec says");
  static_assert(
      [] {
        int ends = 0;
        for (std::size_t i = 1; i <= type::size; ++i) ends += chosen.has(type::first(i) - 1);
        return ends == chosen.count();
      }(),
      "a stack ends with each of the layers of a ViT whose blocks differ");
};
template <class... Parts, int depth>
struct BlocksOf<Stacks<Parts...>, depth, Layers{}> {
  using type = Stacks<Parts...>;
  static_assert(type::count == depth, "the stacks of a ViT have as many blocks as its spec says");
};

/// Blocks, whose call gives what each of their stacks gives.
template <class Blocks>
struct EachStack {
  const Blocks& blocks;

  template <class X, class... Give>
  auto operator()(const X& x, const Give&... give) const {
    return blocks.each(x, give...);
  }
};

}  // namespace detail

namespace detail {

/// What does not go together in a VitSpec.
template <VitSpec S>
struct VitSpecProblem {
  constexpr Text operator()() const {
    Text t;
    const bool layers = S.layers.count() != 0, twice = S.pooling == Pooling::class_token_and_mean;
    if (!S.class_token && (S.pooling == Pooling::class_token || twice)) {
      t.put("a ViT without a class token is pooled by something else; did you mean .pooling = Pooling::mean?");
    } else if (twice && S.distilled) {
      t.put("a distilled ViT averages the logits of two tokens, each as wide as one; ");
      t.put("did you mean .pooling = Pooling::class_token?");
    } else if (twice && S.classes == 0 && S.features == Features::both) {
      t.put("a vector twice as wide as a token stands before no tokens; did you mean .features = Features::pooled?");
    } else if (layers && S.classes != 0) {
      t.put("a ViT that gives layers has no head; did you mean .classes = 0?");
    } else if (layers && S.layers.last() != S.depth - 1) {
      t.put("the layers that a ViT gives end with its last block, and of ").put(std::int64_t{S.depth});
      t.put(", counted from 0, ").put(std::int64_t{S.layers.last()}).put(" is not the last; did you mean .layers = {");
      for (int i = 0; i < S.depth - 1; ++i)
        if (S.layers.has(i) && i != S.layers.last()) t.put(std::int64_t{i}).put(", ");
      t.put(std::int64_t{S.depth - 1}).put("}?");
    }
    if (t.size) t.put(" [vit-spec]");
    return t;
  }
};

}  // namespace detail

/// VitBlock as a VitSpec says it.
template <class V>
using PlainBlock = VitBlock<V>;

/// Images [B, C, IH, IW] -> logits [B, CLASSES]; without classes, features, or what chosen layers give [B, L, T, D].
/// Block is a template of a VitAxes, as VitBlock is: a module from tokens to tokens, or Stacks of such modules where
/// blocks differ. Sentence: [vit-spec].
template <VitSpec S, template <class> class Block = PlainBlock>
struct Vit : Module, std::conditional_t<S.classes != 0, detail::VitRecipe, detail::VitInput> {
  static constexpr bool gives_layers = S.layers.count() != 0;

  using V = VitAxes<S>;
  using Tokens = typename V::Tokens;
  using Norm = typename V::template Norm<V::D>;
  static constexpr auto B = V::B;
  static constexpr auto C = V::C;
  static constexpr auto IH = V::IH;
  static constexpr auto IW = V::IW;
  static constexpr auto N = V::N;
  static constexpr auto R = V::R;
  static constexpr auto FRONT = V::FRONT;
  static constexpr auto D = V::D;
  static constexpr bool pools_twice = S.pooling == Pooling::class_token_and_mean && fits<detail::VitSpecProblem<S>>;
  static constexpr auto POOLED = [] {
    if constexpr (pools_twice)
      return D + D;
    else
      return D;
  }();
  static constexpr auto E = [] {  // width of what the head sees
    if constexpr (S.representation == 0)
      return POOLED;
    else
      return axis<"E", S.representation>;
  }();

  struct PatchEmbedding : Module {
    static constexpr bool bias = S.stem != Stem::norm_of_all;
    std::conditional_t<bias, PatchConvolution<C, D, V::P, V::Q>, PatchConvolutionWithoutBias<C, D, V::P, V::Q>> proj;
    If<S.stem == Stem::normed, Norm> norm{S.epsilon};
    TESSERA_MEMBERS(PatchEmbedding, proj, norm)

    Tensor<B, N, D> forward(Tensor<B, C, IH, IW> images) const { return norm(proj(tiled(images))); }

   private:
    /// What patches see.
    template <class X>
    static auto tiled(const X& images) {
      if constexpr (S.rest.height == 0 && S.rest.width == 0)
        return images;
      else
        return slice<3>(slice<2>(images, 0_c, V::GH * V::P), 0_c, V::GW * V::Q);
    }
  };

  /// timm's key for the layer before the head, whose activation has no parameters.
  struct Representation : Module {
    Linear<POOLED, E> fc;
    TESSERA_MEMBERS(Representation, fc)

    Tensor<B, E> forward(Tensor<B, POOLED> x) const { return tanh(fc(x)); }
  };

  static constexpr bool in_grid = S.positions == Positions::grid || S.positions == Positions::grid_inclusive;
  static constexpr bool patch_positions = S.patch_positions || in_grid;
  static constexpr auto POSITIONS = [] {
    if constexpr (patch_positions)
      return N;
    else
      return V::T;
  }();
  static constexpr auto CLASSES = [] {
    if constexpr (S.classes == 0)
      return 1_c;
    else
      return axis<"CLASSES", S.classes>;
  }();
  static constexpr bool pools = S.classes != 0 || (S.features != Features::tokens && !gives_layers);
  static constexpr bool attends = S.pooling == Pooling::attention || S.pooling == Pooling::attention_to_all;
  using Layer = Block<V>;
  using Head = If<S.classes != 0, Linear<E, CLASSES>>;

  PatchEmbedding patch_embed;
  If<S.class_token, Parameter<1_c, 1_c, D>> cls_token{normal(0, 0.02)};
  If<S.distilled, Parameter<1_c, 1_c, D>> dist_token{normal(0, 0.02)};
  If<S.registers != 0, Parameter<1_c, R, D>> reg_token{normal(0, 0.02)};
  If<S.positions == Positions::learned, Parameter<1_c, POSITIONS, D>> pos_embed{normal(0, 0.02)};
  If<S.stem == Stem::norm_of_all, Norm> norm_pre{S.epsilon};
  typename detail::SharedOf<Layer>::type shared;
  typename detail::BlocksOf<Layer, S.depth, S.layers>::type blocks;
  If<S.final_norm == FinalNorm::before_pooling, Norm> norm{S.epsilon};
  If<pools && attends, AttentionPool<V>> attn_pool;
  If<pools && S.final_norm == FinalNorm::after_pooling, typename V::template Norm<POOLED>> fc_norm{S.epsilon};
  If<pools && S.representation != 0, Representation> pre_logits;
  Head head;
  If<S.distilled, Head> head_dist;
  TESSERA_MEMBERS(Vit, patch_embed, cls_token, dist_token, reg_token, pos_embed, norm_pre, shared, blocks, norm,
                  attn_pool, fc_norm, pre_logits, head, head_dist)

  Vit() {
    if constexpr (!fits<detail::VitSpecProblem<S>>) Refusal<detail::VitSpecProblem<S>>::poison();
  }

  auto forward(Tensor<B, C, IH, IW> images) const {
    if constexpr (gives_layers)
      return std::apply([](const auto&... tokens) { return stack<1>(tokens...); }, layers(images));
    else
      return ending(norm(shared(blocks, entering(images))));
  }

  /// What the chosen layers give, a tuple of tokens [B, T, D], each behind the last norm.
  auto layers(Tensor<B, C, IH, IW> images) const {
    static_assert(gives_layers);
    return chosen(shared(detail::EachStack{blocks}, entering(images)));
  }

 private:
  Tokens entering(const Tensor<B, C, IH, IW>& images) const {
    return norm_pre(dropout<S.dropout>(embedded(patch_embed(images))));
  }

  /// Of what each stack gives, that of the chosen layers.
  template <class... Each>
  auto chosen(const std::tuple<Each...>& each) const {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      const auto some = std::tuple_cat(chosen<i>(std::get<i>(each))...);
      return std::apply([&](const auto&... tokens) { return std::tuple{norm(tokens)...}; }, some);
    }(std::index_sequence_for<Each...>());
  }
  template <std::size_t i, class X>
  static auto chosen(const X& tokens) {
    if constexpr (S.layers.has(decltype(blocks)::first(i + 1) - 1))
      return std::tuple(tokens);
    else
      return std::tuple();
  }

  auto ending(const Tokens& tokens) const {
    if constexpr (!pools) {
      return tokens;
    } else {
      const auto first = head(pre_logits(fc_norm(pooled(tokens))));
      if constexpr (S.distilled) {
        const Tensor<B, D> second = take<1>(tokens, 1_c);
        return (first + head_dist(pre_logits(fc_norm(second)))) / 2.0;
      } else if constexpr (S.classes == 0 && S.features == Features::both) {
        return concat<1>(rearrange<"b d -> b 1 d">(first), tokens);
      } else {
        return first;
      }
    }
  }

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
    if constexpr (S.positions == Positions::none)
      return x;
    else if constexpr (S.positions == Positions::learned)
      return x + rearrange<"1 n d -> n d">(pos_embed);
    else if constexpr (S.positions == Positions::sinusoidal)
      return x + sinusoidal<POSITIONS, D>();
    else
      return x + sinusoidal_2d<V::GH, V::GW, D, S.positions == Positions::grid_inclusive>();
  }

  template <class X>
  auto with_front(const X& x) const {
    return before(cls_token, before(dist_token, before(reg_token, x)));
  }

  /// Learned tokens, the same for each image, in front of x.
  template <class Learned, class X>
  static auto before(const Learned& learned, const X& x) {
    if constexpr (std::is_same_v<Learned, Identity>) {
      return x;
    } else if constexpr (std::is_same_v<Learned, Parameter<1_c, 1_c, D>>) {
      const auto token = repeat<"1 1 d -> b 1 d">(learned, "b"_is(B));
      return concat<1>(token, x);
    } else {
      const auto tokens = repeat<"1 r d -> b r d">(learned, "b"_is(B));
      return concat<1>(tokens, x);
    }
  }

  Tensor<B, POOLED> pooled(const Tokens& tokens) const {
    if constexpr (S.pooling == Pooling::class_token)
      return take<1>(tokens, 0_c);
    else if constexpr (pools_twice)
      return concat<1>(take<1>(tokens, 0_c), mean<1>(patches_of(tokens)));
    else if constexpr (S.pooling == Pooling::attention_to_all)
      return attn_pool(tokens);
    else if constexpr (S.pooling == Pooling::attention)
      return attn_pool(patches_of(tokens));
    else
      return mean<1>(patches_of(tokens));
  }
  static auto patches_of(const Tokens& tokens) {
    if constexpr (FRONT.value == Dim::constant(0))
      return tokens;
    else
      return slice<1>(tokens, FRONT, N);
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
