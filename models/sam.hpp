// sam: the image encoder of Segment Anything, Kirillov et al. 2023, with keys and numbers of timm's samvit models. It
// is the plain Vision Transformer for detection of Li et al. 2022.
//
// Patches stay a map. Most blocks attend within windows of it, which is filled up with zeros where they do not divide
// it; the last of each group of blocks attends to the whole map. Scores know how many rows and columns two tokens are
// apart. A neck of convolutions makes the embedding of the image.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "models/swin.hpp"

namespace tessera::models {

/// What can differ from one encoder to another. The defaults are those of SAM's ViT-B.
struct SamSpec {
  Extent image = 1024;
  std::int64_t patch = 16;
  std::int64_t channels = 3;
  std::int64_t width = 768;       ///< of a token
  std::int64_t heads = 12;        ///< of a block
  int depth = 12;                 ///< blocks
  std::int64_t mlp = 4;           ///< the MLP's hidden layer is this many times as wide as a token
  std::int64_t window = 14;       ///< tokens down and across
  int whole_every = 3;            ///< the last of so many blocks attends to the whole map
  bool learned_positions = true;  ///< key pos_embed
  std::int64_t neck = 256;        ///< channels of the embedding; 0: tokens are normalised and keep their width
  std::int64_t classes = 0;       ///< 0: the model gives the map of the neck
  double epsilon = 1e-6;          ///< of the blocks' norms

  // What training leaves out at random; evaluation leaves out nothing.
  double dropout = 0;            ///< of what attention and both layers of the MLP give
  double attention_dropout = 0;  ///< of attention's probabilities
  double drop_path = 0;          ///< of whole branches, the same share in each block
};

/// The axes of a block that attends to windows, or to the whole map.
template <SamSpec S, bool whole>
struct SamAxes {
  /// Of the parts that it shares with ViT.
  static constexpr VitSpec spec{.width = S.width,
                                .heads = S.heads,
                                .mlp = S.mlp,
                                .epsilon = S.epsilon,
                                .dropout = S.dropout,
                                .attention_dropout = S.attention_dropout,
                                .drop_path = S.drop_path};
  static constexpr std::int64_t rows = S.image.height / S.patch, columns = S.image.width / S.patch;
  static constexpr std::int64_t high = whole ? rows : S.window, wide = whole ? columns : S.window;

  static constexpr auto B = axis<"B">;
  static constexpr auto P = axis<"P", S.patch>;
  static constexpr auto DOWN = axis<"DOWN", Constant<S.image.height>{} / P>;  // tokens down and across
  static constexpr auto ACROSS = axis<"ACROSS", Constant<S.image.width>{} / P>;
  static constexpr auto WH = axis<"WH", high>;  // a window's height and width
  static constexpr auto WW = axis<"WW", wide>;
  static constexpr auto UH = axis<"UH", (rows + high - 1) / high>;  // windows down and across
  static constexpr auto UW = axis<"UW", (columns + wide - 1) / wide>;
  static constexpr auto GH = axis<"GH", UH * WH>;  // height and width of a map of whole windows
  static constexpr auto GW = axis<"GW", UW * WW>;
  static constexpr auto W = axis<"W", UH * UW>;  // windows
  static constexpr auto N = axis<"N", WH * WW>;  // tokens of a window
  static constexpr auto H = axis<"H", spec.heads>;
  static constexpr auto K = axis<"K", Constant<spec.width>{} / H>;  // width of a head
  static constexpr auto D = axis<"D", H * K>;                       // width of a token
  static constexpr auto M = axis<"M", Constant<spec.mlp>{} * D>;    // width of the MLP's hidden layer

  using Tokens = Tensor<B, DOWN, ACROSS, D>;
  using Map = Tensor<B, GH, GW, D>;
  using Windows = Tensor<B, W, N, D>;
  using Heads = Tensor<B, W, H, N, K>;
  using Scores = Tensor<B, W, H, N, N>;

  static constexpr auto UP = 0_c, LEFT = 0_c;  // no block moves the map
};

namespace detail {

/// x with zeros behind it along an axis, which becomes `size` long. PyTorch equivalent: torch.nn.functional.pad.
template <int axis, class X, class Size>
auto filled_up(const X& x, Size size) {
  using Now = typename X::dims::template at<axis>;
  if constexpr (Size::value.value() == Now::value.value()) {
    return rename<axis>(x, size);
  } else {
    using Zeros = TensorOf<replace_axis<typename X::dims, axis, decltype(size - Now{})>>;
    graph::Builder& r = recorder();
    return rename<axis>(concat<axis>(x, Zeros(r.broadcast(r.constant(0), Zeros::shape.dims(), {}))), size);
  }
}

}  // namespace detail

/// Products of queries and keys, and what a query makes of how many rows and columns a key is away: Li et al. 2021
/// (MViTv2), section 4.1.
template <class V>
struct ScoresByRowsAndColumns : Part {
  Parameter<2_c * V::WH - 1_c, V::K> rel_pos_h{constant(0)};
  Parameter<2_c * V::WW - 1_c, V::K> rel_pos_w{constant(0)};
  TESSERA_MEMBERS(ScoresByRowsAndColumns, rel_pos_h, rel_pos_w)

  typename V::Scores forward(const typename V::Heads& q, const typename V::Heads& k) const {
    const auto map = rearrange<"b w h (y x) k -> b w h y x k">(q, "y"_is(V::WH));
    const auto down = einsum<"b w h y x k, i y k -> b w h y x i">(map, by_distance<V::WH>(rel_pos_h));
    const auto across = einsum<"b w h y x k, j x k -> b w h y x j">(map, by_distance<V::WW>(rel_pos_w));
    const auto of_row = rearrange<"b w h y x i -> b w h (y x) i">(down);
    const auto of_column = rearrange<"b w h y x j -> b w h (y x) j">(across);
    const auto away = repeat<"b w h n i -> b w h n i j">(of_row, "j"_is(V::WW)) +
                      repeat<"b w h n j -> b w h n i j">(of_column, "i"_is(V::WH));
    const auto products = einsum<"b w h i k, b w h j k -> b w h i j">(q, k) / sqrt(V::K);
    const auto scores = away + rearrange<"b w h n (i j) -> b w h n i j">(products, "i"_is(V::WH));
    return rearrange<"b w h n i j -> b w h n (i j)">(scores);
  }
};

/// Attention and MLP, each a branch beside its input. Attention is to whole windows: what fills up those at the end is
/// attended to as well, and cut off again.
template <class V>
struct SamBlock : Module {
  static constexpr VitSpec S = V::spec;
  using Tokens = typename V::Tokens;

  LayerNorm<V::D> norm1{S.epsilon};
  WindowAttention<V, false, ScoresByRowsAndColumns> attn;
  LayerNorm<V::D> norm2{S.epsilon};
  Mlp<V> mlp;
  TESSERA_MEMBERS(SamBlock, norm1, attn, norm2, mlp)

  Tokens forward(Tokens x) const {
    const typename V::Map map = detail::filled_up<2>(detail::filled_up<1>(norm1(x), V::GH), V::GW);
    const Tokens attended = slice<2>(slice<1>(attn(map), 0_c, V::DOWN), 0_c, V::ACROSS);
    const Tokens y = x + drop_path<S.drop_path>(attended);
    return y + drop_path<S.drop_path>(mlp(norm2(y)));
  }
};

/// A layer norm of each pixel's channels, of maps [B, C, y, x]. Keys: weight [C], bias [C].
/// PyTorch equivalent: timm.layers.LayerNorm2d(C).
template <DimExpression auto C>
struct LayerNorm2d : Module {
  static constexpr double epsilon = 1e-6;
  Parameter<C> weight{constant(1)};
  Parameter<C> bias{constant(0)};
  TESSERA_MEMBERS(LayerNorm2d, weight, bias)

  template <AnyTensor X>
  auto forward(const X& x) const {
    const auto pixels = rearrange<"b c y x -> b y x c">(x);
    using Pixels = std::remove_cv_t<decltype(pixels)>;
    const Pixels normed(recorder().layer_norm(node_of(pixels), node_of(weight), node_of(bias), {3}, epsilon));
    return rearrange<"b y x c -> b c y x">(normed);
  }
};

namespace detail {

/// Preprocessing as that of timm's models: the mean and deviation of ImageNet, nothing cut off.
struct SamInput {
  static constexpr Preprocessing input{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 1};
};
/// And how it is trained: a model with classes.
struct SamRecipe {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = SamInput::input};
};

/// Blocks of which the last of each `every` attends to the whole map.
template <SamSpec S>
struct SamBlocks {
  static constexpr int every = S.whole_every;
  template <int... i>
  static InTurns<SamBlock<SamAxes<S, i == every - 1>>...> group(std::integer_sequence<int, i...>);
  using Group = decltype(group(std::make_integer_sequence<int, every>()));
  using type = Stack<Group, S.depth / every>;
};

/// What is none of a SamSpec.
template <SamSpec S>
struct SamSpecProblem {
  constexpr Text operator()() const {
    Text t;
    const auto has = [&](std::int64_t count, const char* what, std::int64_t least = 1) {
      if (count < least && t.size == 0)
        t.put("a SAM image encoder has ").put(count).put(" ").put(what).put(", needs at least ").put(least);
    };
    has(S.patch, "pixels across a patch");
    has(S.channels, "channels");
    has(S.width, "numbers of a token");
    has(S.heads, "heads");
    has(S.depth, "blocks");
    has(S.mlp, "times the width of a token in its MLP");
    has(S.window, "tokens across a window");
    has(S.whole_every, "blocks in a group");
    has(S.neck, "channels of an embedding", 0);
    has(S.classes, "classes", 0);
    if (t.size == 0 && S.depth % S.whole_every) {
      t.put(S.depth).put(" blocks make no whole groups of ").put(S.whole_every);
      t.put(", whose last block attends to the whole map (did you mean .depth = ");
      t.put((S.depth / S.whole_every + 1) * S.whole_every).put("?)");
    }
    if (t.size) t.put(" [sam-spec]");
    return t;
  }
};

}  // namespace detail

/// Images [B, C, IH, IW] -> embeddings [B, E, DOWN, ACROSS]; with classes, logits [B, CLASSES] of their mean. Sentence:
/// [sam-spec].
template <SamSpec Asked>
struct SamEncoder : Module, std::conditional_t<Asked.classes != 0, detail::SamRecipe, detail::SamInput> {
  static constexpr SamSpec S = checked<detail::SamSpecProblem<Asked>, Asked, SamSpec{}>;
  using V = SamAxes<S, true>;
  static constexpr auto B = V::B;
  static constexpr auto C = axis<"C", S.channels>;
  static constexpr auto IH = axis<"IH", V::DOWN * V::P>;
  static constexpr auto IW = axis<"IW", V::ACROSS * V::P>;
  static constexpr auto D = V::D;
  static constexpr auto E = [] {
    if constexpr (S.neck > 0)
      return axis<"E", S.neck>;
    else
      return V::D;
  }();
  static constexpr auto CLASSES = axis < "CLASSES", S.classes ? S.classes : 1 > ;

  struct PatchEmbedding : Module {
    PatchConvolution<C, D, V::P, V::P> proj;
    TESSERA_MEMBERS(PatchEmbedding, proj)

    typename V::Tokens forward(Tensor<B, C, IH, IW> images) const {
      return rearrange<"b (y x) d -> b y x d">(proj(images), "y"_is(V::DOWN));
    }
  };

  /// A learned vector for each place of the map.
  struct LearnedPositions : Part {
    Parameter<1_c, V::DOWN, V::ACROSS, D> pos_embed{normal(0, 0.02)};
    TESSERA_MEMBERS(LearnedPositions, pos_embed)

    typename V::Tokens forward(typename V::Tokens x) const { return x + expand_as(pos_embed, x); }
  };

  /// timm's key.
  struct Head : Module {
    Linear<E, CLASSES> fc;
    TESSERA_MEMBERS(Head, fc)

    Tensor<B, CLASSES> forward(Tensor<B, E> x) const { return fc(x); }
  };

  PatchEmbedding patch_embed;
  If<S.learned_positions, LearnedPositions> positions;
  typename detail::SamBlocks<S>::type blocks;
  std::conditional_t<(S.neck > 0),
                     Sequential<Conv2dWithoutBias<D, E, 1_c, 1_c>, LayerNorm2d<E>,
                                Conv2dWithoutBias<E, E, 3_c, 3_c, Convolution{.padding = 1}>, LayerNorm2d<E>>,
                     LayerNorm2d<D>>
      neck;
  If<S.classes != 0, Head> head;
  TESSERA_MEMBERS(SamEncoder, patch_embed, positions, blocks, neck, head)

  auto forward(Tensor<B, C, IH, IW> images) const {
    const typename V::Tokens tokens = blocks(positions(patch_embed(images)));
    const Tensor<B, E, V::DOWN, V::ACROSS> embedding = neck(rearrange<"b y x d -> b d y x">(tokens));
    if constexpr (S.classes != 0)
      return head(mean<2>(rearrange<"b e y x -> b e (y x)">(embedding)));
    else
      return embedding;
  }
};

using SamBase = SamEncoder<{}>;
using SamLarge = SamEncoder<{.width = 1024, .heads = 16, .depth = 24, .whole_every = 6}>;
using SamHuge = SamEncoder<{.width = 1280, .heads = 16, .depth = 32, .whole_every = 8}>;

}  // namespace tessera::models
