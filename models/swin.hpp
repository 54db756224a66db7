// swin: the Swin Transformer of Liu et al. 2021, with keys and numbers of timm's models of that name.
//
// Patches stay a map [B, GH, GW, D]. Attention is within windows of it; every other block moves the map by half a
// window before and back after, so that what lay in two windows meets. Between stages, four neighbours become one token
// twice as wide.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "models/vit_parts.hpp"

namespace tessera::models {

/// What can differ from one Swin Transformer to another. The defaults are those of Swin-T.
struct SwinSpec {
  Extent image = 224;
  std::int64_t patch = 4;
  std::int64_t channels = 3;
  std::int64_t width = 96;                 ///< of a token of the first stage; each stage doubles it
  std::int64_t heads[4] = {3, 6, 12, 24};  ///< of each stage's blocks
  int depths[4] = {2, 2, 6, 2};            ///< blocks of each stage; 0: there is no such stage, and none behind it
  Extent windows[4] = {7, 7, 7, 7};        ///< of each stage; one as large as the map, or larger, is the whole map
  std::int64_t mlp = 4;                    ///< the MLP's hidden layer is this many times as wide as a token
  std::int64_t classes = 1000;             ///< 0: the model gives features and has no head
  double epsilon = 1e-5;                   ///< of the norms

  // Of SwinV2.
  std::int64_t position_mlp = 512;              ///< hidden layer of what makes biases of positions
  Extent pretrained_windows[4] = {0, 0, 0, 0};  ///< that distances are measured by; 0: the stage's own

  // What training leaves out at random; evaluation leaves out nothing.
  double dropout = 0;            ///< of what attention and both layers of the MLP give
  double attention_dropout = 0;  ///< of attention's probabilities
  double drop_path = 0;          ///< of whole branches, the same share in each block

  constexpr int stages() const { return static_cast<int>(std::find(depths, depths + 4, 0) - depths); }
};

namespace detail {

/// Tokens of a stage along so many pixels: each stage has half as many.
template <std::int64_t pixels, int stage, class P>
constexpr auto of_stage(P patch) {
  if constexpr (stage == 0)
    return Constant<pixels>{} / patch;
  else
    return of_stage<pixels, stage - 1>(patch) / 2_c;
}

}  // namespace detail

/// The axes of a stage, for its parts.
template <SwinSpec S, int stage>
struct SwinAxes {
  /// Of the parts that it shares with ViT.
  static constexpr VitSpec spec{.width = S.width << stage,
                                .heads = S.heads[stage],
                                .mlp = S.mlp,
                                .epsilon = S.epsilon,
                                .dropout = S.dropout,
                                .attention_dropout = S.attention_dropout,
                                .drop_path = S.drop_path};
  static constexpr std::int64_t pixels = S.patch << stage;  // of an image, across a token
  static constexpr std::int64_t height = S.image.height / pixels, width = S.image.width / pixels;
  static constexpr Extent window = S.windows[stage];
  static constexpr Extent reach = S.pretrained_windows[stage];
  static constexpr std::int64_t position_mlp = S.position_mlp;
  static constexpr bool square = S.image.height == S.image.width && window.height == window.width;

  static constexpr auto B = axis<"B">;
  static constexpr auto P = axis<"P", S.patch>;
  static constexpr auto DOWN = detail::of_stage<S.image.height, stage>(P);  // tokens down and across
  static constexpr auto ACROSS = detail::of_stage<S.image.width, stage>(P);
  static constexpr auto WH = axis<"WH", std::min(window.height, height)>;  // a window's height and width
  static constexpr auto UH = axis<"UH", DOWN / WH>;                        // windows down and across
  static constexpr auto WW = [] {
    if constexpr (square)
      return WH;
    else
      return axis<"WW", std::min(window.width, width)>;
  }();
  static constexpr auto UW = [] {
    if constexpr (square)
      return UH;
    else
      return axis<"UW", ACROSS / WW>;
  }();
  static constexpr auto GH = axis<"GH", UH * WH>;  // the map's height and width
  static constexpr auto GW = axis<"GW", UW * WW>;
  static constexpr auto W = axis<"W", UH * UW>;  // windows
  static constexpr auto N = axis<"N", WH * WW>;  // tokens of a window
  static constexpr auto H = axis<"H", spec.heads>;
  static constexpr auto K = axis<"K", Constant<spec.width>{} / H>;  // width of a head
  static constexpr auto D = axis<"D", H * K>;                       // width of a token
  static constexpr auto M = axis<"M", Constant<spec.mlp>{} * D>;    // width of the MLP's hidden layer

  using Map = Tensor<B, GH, GW, D>;
  using Windows = Tensor<B, W, N, D>;
  using Heads = Tensor<B, W, H, N, K>;
  using Scores = Tensor<B, W, H, N, N>;

  /// How far every other block moves the map up and left.
  static constexpr auto UP = Constant<(WH.value.value() < height ? WH.value.value() / 2 : 0)>{};
  static constexpr auto LEFT = Constant<(WW.value.value() < width ? WW.value.value() / 2 : 0)>{};
};

namespace detail {

/// Preprocessing as that of timm's models: the mean and deviation of ImageNet.
struct SwinInput {
  static constexpr Preprocessing input{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 0.9};
};
/// And how it is trained: a model with classes.
struct SwinRecipe {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = SwinInput::input};
};

/// Moves an axis towards its beginning; what leaves it there comes in at its end. PyTorch equivalent: torch.roll(x,
/// -by, axis).
template <int axis, class X, class By>
auto rolled(const X& x, By by) {
  using Size = typename X::dims::template at<axis>;
  if constexpr (By::value.value() % Size::value.value() == 0) {
    return x;
  } else {
    return concat<axis>(slice<axis>(x, by, Size{} - by), slice<axis>(x, 0_c, by));
  }
}

}  // namespace detail

/// Queries, keys and values of windows, by one map with a bias.
template <class V>
struct WindowQkv : Part {
  Linear<V::D, 3_c * V::D> qkv;
  TESSERA_MEMBERS(WindowQkv, qkv)

  auto forward(typename V::Windows x) const {
    return unstack<0>(rearrange<"b w n (s h k) -> s b w h n k">(qkv(x), "h"_is(V::H), "k"_is(V::K)), 3_c);
  }
};

/// Products of queries and keys, and a bias for each way that two tokens stand to each other.
template <class V>
struct ScoresByTable : Part {
  static constexpr std::int64_t ways = (2 * V::WH.value.value() - 1) * (2 * V::WW.value.value() - 1);
  Parameter<axis<"WAYS", ways>, V::H> relative_position_bias_table{normal(0, 0.02)};
  TESSERA_MEMBERS(ScoresByTable, relative_position_bias_table)

  typename V::Scores forward(const typename V::Heads& q, const typename V::Heads& k) const {
    const typename V::Scores scores = einsum<"b w h i k, b w h j k -> b w h i j">(q, k) / sqrt(V::K);
    return scores + relative_position_bias<V::WH, V::WW>(relative_position_bias_table);
  }
};

/// Attention within windows of a map that is moved by half a window or is not: Liu et al. 2021, section 3.2.
template <class V, bool moves, template <class> class ScoresOf = ScoresByTable,
          template <class> class QkvOf = WindowQkv>
struct WindowAttention : Module {
  static constexpr VitSpec S = V::spec;
  static constexpr auto UP = std::conditional_t<moves, decltype(V::UP), Constant<0>>{};
  static constexpr auto LEFT = std::conditional_t<moves, decltype(V::LEFT), Constant<0>>{};
  using Map = typename V::Map;
  using Windows = typename V::Windows;
  using Scores = typename V::Scores;

  ScoresOf<V> scored;
  QkvOf<V> maps;
  Linear<V::D, V::D> proj;
  TESSERA_MEMBERS(WindowAttention, scored, maps, proj)

  Map forward(Map x) const {
    const Map moved = detail::rolled<2>(detail::rolled<1>(x, UP), LEFT);
    const Windows windows = rearrange<"b (u i) (v j) d -> b (u v) (i j) d">(moved, "i"_is(V::WH), "j"_is(V::WW));
    const auto [q, k, v] = maps(windows);
    const auto probabilities = dropout<S.attention_dropout>(softmax<-1>(masked(scored(q, k))));
    const auto mixed = einsum<"b w h i j, b w h j k -> b w h i k">(probabilities, v);
    const Windows given = dropout<S.dropout>(proj(rearrange<"b w h n k -> b w n (h k)">(mixed)));
    const Map back = rearrange<"b (u v) (i j) d -> b (u i) (v j) d">(given, "u"_is(V::UH), "v"_is(V::UW), "i"_is(V::WH),
                                                                     "j"_is(V::WW));
    return detail::rolled<2>(detail::rolled<1>(back, V::GH - UP), V::GW - LEFT);
  }

 private:
  static constexpr bool wraps = UP.value.value() != 0 || LEFT.value.value() != 0;

  /// The last windows of a moved map hold tokens of its two ends, which are no neighbours: these see 100 less.
  static Scores masked(const Scores& scores) {
    if constexpr (!wraps) {
      return scores;
    } else {
      const auto across = repeat<"y -> x y">(ends<V::GW>(V::WW, LEFT), "x"_is(V::GH));
      const auto down = repeat<"x -> x y">(ends<V::GH>(V::WH, UP), "y"_is(V::GW));
      const auto end = rearrange<"(u i) (v j) -> (u v) (i j)">(down * 3 + across, "i"_is(V::WH), "j"_is(V::WW));
      const auto apart = not_equal(repeat<"w i -> w h i j">(end, "h"_is(V::H), "j"_is(V::N)),
                                   repeat<"w j -> w h i j">(end, "h"_is(V::H), "i"_is(V::N)));
      return scores - apart * 100;
    }
  }
  /// 0 before the last window of an axis; in it 1, and 2 where tokens of the other end are.
  template <auto G, class Window, class By>
  static Tensor<G> ends(Window, By) {
    const auto at = arange<G>();
    return greater_equal(at, static_cast<double>((G - Window{}).value.value())) +
           greater_equal(at, static_cast<double>((G - By{}).value.value()));
  }
};

/// Attention and MLP, each a branch beside its input.
template <class V, bool moves>
struct SwinBlock : Module {
  static constexpr VitSpec S = V::spec;
  using Map = typename V::Map;

  LayerNorm<V::D> norm1{S.epsilon};
  WindowAttention<V, moves> attn;
  LayerNorm<V::D> norm2{S.epsilon};
  Mlp<V> mlp;
  TESSERA_MEMBERS(SwinBlock, norm1, attn, norm2, mlp)

  Map forward(Map x) const {
    const Map y = x + drop_path<S.drop_path>(attn(norm1(x)));
    return y + drop_path<S.drop_path>(mlp(norm2(y)));
  }
};

/// Four neighbours, column by column, become one token.
template <class From, class V>
struct PatchMerging : Module {
  LayerNorm<4_c * From::D> norm{V::spec.epsilon};
  LinearWithoutBias<4_c * From::D, V::D> reduction;
  TESSERA_MEMBERS(PatchMerging, norm, reduction)

  typename V::Map forward(typename From::Map x) const {
    const auto pairs = rename<2>(rename<1>(x, V::GH * 2_c), V::GW * 2_c);
    return reduction(norm(rearrange<"b (y i) (x j) d -> b y x (j i d)">(pairs, "i"_is(2_c), "j"_is(2_c))));
  }
};

namespace detail {

/// Blocks of which every other one moves the map; where its windows are the whole map, none does.
template <template <class, bool> class Block, class V, int depth>
struct SwinBlocks {
  static constexpr bool moves = V::UP.value.value() != 0 || V::LEFT.value.value() != 0;
  template <int... i>
  static Sequential<Block<V, i % 2 != 0>...> one_by_one(std::integer_sequence<int, i...>);
  static auto blocks() {
    if constexpr (!moves)
      return Stack<Block<V, false>, depth>{};
    else if constexpr (depth % 2 == 0)
      return Stack<InTurns<Block<V, false>, Block<V, true>>, depth / 2>{};
    else
      return decltype(one_by_one(std::make_integer_sequence<int, depth>())){};
  }
  using type = decltype(blocks());
};

}  // namespace detail

/// What stages are made of.
struct SwinParts {
  static constexpr bool measures_distances = false;
  template <class V, bool moves>
  using Block = SwinBlock<V, moves>;
  template <class From, class V>
  using Merging = PatchMerging<From, V>;
};

/// The blocks of a stage, of which every other one moves the map; before those of all but the first, tokens are merged.
template <SwinSpec S, int stage, class Parts>
struct SwinStage : Module {
  using V = SwinAxes<S, stage>;
  using From = SwinAxes<S, stage ? stage - 1 : 0>;
  If<stage != 0, typename Parts::template Merging<From, V>> downsample;
  typename detail::SwinBlocks<Parts::template Block, V, S.depths[stage]>::type blocks;
  TESSERA_MEMBERS(SwinStage, downsample, blocks)

  typename V::Map forward(typename From::Map x) const { return blocks(downsample(x)); }
};

namespace detail {

/// What is none of a SwinSpec, or is of another version.
template <SwinSpec S, class Parts>
struct SwinSpecProblem {
  constexpr Text operator()() const {
    Text t;
    const auto has = [&](std::int64_t count, const char* what) {
      if (count < 1 && t.size == 0)
        t.put("a Swin Transformer has ").put(count).put(" ").put(what).put(", needs at least 1");
    };
    has(S.patch, "pixels across a patch");
    has(S.channels, "channels");
    has(S.width, "numbers of a token");
    has(S.mlp, "times the width of a token in its MLP");
    has(S.position_mlp, "hidden numbers of a distance");
    has(S.stages(), "stages");
    bool others = S.position_mlp != 512;
    for (int stage = 0; stage < S.stages(); ++stage) {
      has(S.heads[stage], "heads in a stage");
      has(std::min(S.windows[stage].height, S.windows[stage].width), "tokens across a window");
      others |= S.pretrained_windows[stage].height != 0 || S.pretrained_windows[stage].width != 0;
    }
    if (t.size == 0 && others && !Parts::measures_distances)
      t.put("a table of biases is of its own windows, and distances in others are of V2; did you mean SwinV2?");
    if (t.size) t.put(" [swin-spec]");
    return t;
  }
};

}  // namespace detail

/// Images [B, C, IH, IW] -> logits [B, CLASSES]; without classes, features [B, D]. Sentence: [swin-spec].
template <SwinSpec Asked, class Parts = SwinParts>
struct Swin : Module, std::conditional_t<Asked.classes != 0, detail::SwinRecipe, detail::SwinInput> {
  static constexpr SwinSpec S = checked<detail::SwinSpecProblem<Asked, Parts>, Asked, SwinSpec{}>;
  using First = SwinAxes<S, 0>;
  using Last = SwinAxes<S, S.stages() - 1>;
  static constexpr auto B = First::B;
  static constexpr auto C = axis<"C", S.channels>;
  static constexpr auto P = First::P;
  static constexpr auto IH = axis<"IH", First::GH * P>;
  static constexpr auto IW = axis<"IW", First::GW * P>;
  static constexpr auto D = Last::D;
  static constexpr auto CLASSES = axis < "CLASSES", S.classes ? S.classes : 1 > ;
  template <int... i>
  static Sequential<SwinStage<S, i, Parts>...> one_after_another(std::integer_sequence<int, i...>);

  struct PatchEmbedding : Module {
    PatchConvolution<C, First::D, P, P> proj;
    LayerNorm<First::D> norm{S.epsilon};
    TESSERA_MEMBERS(PatchEmbedding, proj, norm)

    typename First::Map forward(Tensor<B, C, IH, IW> images) const {
      return rearrange<"b (y x) d -> b y x d">(norm(proj(images)), "y"_is(First::GH));
    }
  };

  /// timm's key.
  struct Head : Module {
    Linear<D, CLASSES> fc;
    TESSERA_MEMBERS(Head, fc)

    Tensor<B, CLASSES> forward(Tensor<B, D> x) const { return fc(x); }
  };

  PatchEmbedding patch_embed;
  decltype(one_after_another(std::make_integer_sequence<int, S.stages()>())) layers;
  LayerNorm<D> norm{S.epsilon};
  If<S.classes != 0, Head> head;
  TESSERA_MEMBERS(Swin, patch_embed, layers, norm, head)

  auto forward(Tensor<B, C, IH, IW> images) const {
    const typename Last::Map map = norm(layers(patch_embed(images)));
    return head(mean<1>(rearrange<"b y x d -> b (y x) d">(map)));
  }
};

using SwinTiny = Swin<{}>;
using SwinSmall = Swin<{.depths = {2, 2, 18, 2}}>;
using SwinBase = Swin<{.width = 128, .heads = {4, 8, 16, 32}, .depths = {2, 2, 18, 2}}>;
using SwinLarge = Swin<{.width = 192, .heads = {6, 12, 24, 48}, .depths = {2, 2, 18, 2}}>;

}  // namespace tessera::models
