// vqgan: images as tokens of a codebook and back, of Esser, Rombach, Ommer 2021 ("Taming Transformers", arXiv
// 2012.09841), with the keys of published checkpoints: a convolutional encoder, the nearest code, a decoder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "dsl/tessera.hpp"

namespace tessera::models {

/// Integers, one a level or one a place where something stands: {1, 1, 2}. Of more than eight only their count is kept.
struct VqganLevels {
  int count = 0;
  std::array<int, 8> values{};

  constexpr VqganLevels(std::initializer_list<int> all) {
    for (const int value : all)
      if (count++ < 8) values.at(static_cast<std::size_t>(count - 1)) = value;
  }
  constexpr int operator[](int i) const { return values.at(static_cast<std::size_t>(i)); }
  constexpr bool has(int value) const {
    for (int i = 0; i < count; ++i)
      if ((*this)[i] == value) return true;
    return false;
  }
};

/// What can differ from one to another. The defaults are those of the published f16 models of 256x256 pixels. Sentence:
/// [vqgan-spec].
struct VqganSpec {
  DownAcross image = 256;  ///< height and width
  std::int64_t channels = 3;
  std::int64_t ch = 128;                 ///< width of the first convolution; a level has a multiple of it
  VqganLevels mult{1, 1, 2, 2, 4};       ///< one a level, of which each but the last halves the image
  int blocks = 2;                        ///< residual blocks of a level; the decoder has one more
  VqganLevels attention{4};              ///< levels, counted from 0, with attention behind each block
  std::int64_t z = 256;                  ///< width of what the encoder gives
  std::int64_t dim = 256, codes = 1024;  ///< numbers of a code, and codes
  std::int64_t groups = 32;              ///< of every group norm
  double beta = 0.25;                    ///< of the codebook's loss
  bool legacy =
      true;  ///< beta weighs the codebook's term, as in published programs; else the commitment's, as in print

  constexpr std::int64_t width(int level) const { return ch * mult[level]; }
};

namespace detail {

/// What of a VqganSpec is none, or too many.
template <VqganSpec S>
struct VqganSpecProblem {
  constexpr Text operator()() const {
    Text t;
    const auto has = [&](std::int64_t count, const char* what) {
      if (count < 1 && t.size == 0) t.put("a VQGAN has ").put(count).put(" ").put(what).put(", needs at least 1");
    };
    has(S.image.down, "rows of pixels");
    has(S.image.across, "columns of pixels");
    has(S.channels, "channels");
    has(S.ch, "channels behind its first convolution");
    has(S.blocks, "blocks of a level");
    has(S.z, "channels that are encoded");
    has(S.dim, "numbers of a code");
    has(S.codes, "codes");
    has(S.groups, "groups of a norm");
    has(S.mult.count, "levels");
    for (const int levels : {S.mult.count, S.attention.count})
      if (levels > 8 && t.size == 0) t.put("a VQGAN has ").put(std::int64_t{levels}).put(" levels, needs at most 8");
    for (int level = 0; t.size == 0 && level < S.mult.count; ++level) {
      if (S.mult[level] > 0) continue;
      t.put("level ").put(std::int64_t{level}).put(" of a VQGAN, counted from 0, has ");
      t.put(std::int64_t{S.mult[level]}).put(" times the channels of its first convolution, needs at least 1");
    }
    if (t.size) t.put(" [vqgan-spec]");
    return t;
  }
};

template <VqganSpec S>
inline constexpr VqganSpec checked_spec =
    checked<VqganSpecProblem<S>, S,
            VqganSpec{.image = 256, .ch = 1, .mult = {1}, .blocks = 1, .z = 1, .dim = 1, .codes = 1, .groups = 1}>;

template <VqganSpec S>
struct VqganParts {
  static constexpr double epsilon = 1e-6;  // of every norm

  template <std::int64_t C>
  using Norm = GroupNorm<Constant<S.groups>{}, Constant<C>{}>;
  template <std::int64_t In, std::int64_t Out>
  using Conv3x3 = Conv2d<Constant<In>{}, Constant<Out>{}, 3_c, 3_c, Convolution{.padding = 1}>;
  template <std::int64_t In, std::int64_t Out>
  using Conv1x1 = Conv2d<Constant<In>{}, Constant<Out>{}, 1_c, 1_c>;

  /// x' + conv2(swish(norm2(conv1(swish(norm1(x)))))); x' is x, or a 1x1 convolution of it where widths differ.
  template <std::int64_t In, std::int64_t Out>
  struct ResnetBlock : Module {
    Norm<In> norm1{epsilon};
    Conv3x3<In, Out> conv1;
    Norm<Out> norm2{epsilon};
    Conv3x3<Out, Out> conv2;
    If<In != Out, Conv1x1<In, Out>> nin_shortcut;
    TESSERA_MEMBERS(ResnetBlock, norm1, conv1, norm2, conv2, nin_shortcut)

    template <AnyTensor X>
    auto forward(const X& x) const {
      const auto y = conv2(silu(norm2(conv1(silu(norm1(x))))));
      return nin_shortcut(x) + y;
    }
  };

  /// x + one head of attention over all positions, scores times C^-1/2.
  template <std::int64_t C>
  struct AttnBlock : Module {
    Norm<C> norm{epsilon};
    Conv1x1<C, C> q, k, v, proj_out;
    TESSERA_MEMBERS(AttnBlock, norm, q, k, v, proj_out)

    template <AnyTensor X>
    auto forward(const X& x) const {
      constexpr auto channels = Constant<C>{};
      using D = typename X::dims;
      const auto n = norm(x);
      const auto queries = rearrange<"b c y x -> b (y x) c">(q(n));
      const auto keys = rearrange<"b c y x -> b (y x) c">(k(n));
      const auto values = rearrange<"b c y x -> b (y x) c">(v(n));
      const auto p = softmax<-1>(einsum<"b i c, b j c -> b i j">(queries, keys) / sqrt(channels));
      const auto mixed = einsum<"b i j, b j c -> b i c">(p, values);
      const auto map = rearrange<"b (y x) c -> b c y x">(mixed, "y"_is(typename D::template at<2>{}),
                                                         "x"_is(typename D::template at<3>{}));
      return x + proj_out(map);
    }
  };

  /// A row of zeros below, a column to the right, then a 3x3 convolution of stride 2.
  template <std::int64_t C>
  struct Downsample : Module {
    Conv2d<Constant<C>{}, Constant<C>{}, 3_c, 3_c, Convolution{.stride = 2, .padding_end = 1}> conv;
    TESSERA_MEMBERS(Downsample, conv)

    template <AnyTensor X>
    auto forward(const X& x) const {
      return conv(x);
    }
  };

  /// Every pixel becomes 2x2 equal ones, then a 3x3 convolution.
  template <std::int64_t C>
  struct Upsample : Module {
    Conv3x3<C, C> conv;
    TESSERA_MEMBERS(Upsample, conv)

    template <AnyTensor X>
    auto forward(const X& x) const {
      return conv(repeat<"b c y x -> b c (y 2) (x 2)">(x));
    }
  };

  /// `count` residual blocks, the first of which changes the width, with attention behind each where the level has it.
  template <std::int64_t In, std::int64_t Out, int count, bool attends>
  struct Level : Module {
    template <class>
    struct Of;
    template <std::size_t... I>
    struct Of<std::index_sequence<I...>> {
      using Blocks = Sequential<ResnetBlock<(I == 0 ? In : Out), Out>...>;
    };
    template <class>
    struct Attentions;
    template <std::size_t... I>
    struct Attentions<std::index_sequence<I...>> {
      using type = Sequential<std::enable_if_t<(I >= 0), AttnBlock<Out>>...>;
    };
    typename Of<std::make_index_sequence<count>>::Blocks block;
    typename Attentions<std::make_index_sequence<attends ? count : 0>>::type attn;

    template <int from = 0, AnyTensor X>
    auto blocks(const X& x) const {
      if constexpr (from == count) {
        return x;
      } else {
        const auto y = block.template at<from>()(x);
        if constexpr (attends)
          return blocks<from + 1>(attn.template at<from>()(y));
        else
          return blocks<from + 1>(y);
      }
    }
  };

  template <int level>
  struct DownLevel : Level<(level ? S.width(level - 1) : S.ch), S.width(level), S.blocks, S.attention.has(level)> {
    If<(level + 1 < S.mult.count), Downsample<S.width(level)>> downsample;
    TESSERA_MEMBERS(DownLevel, block, attn, downsample)

    template <AnyTensor X>
    auto forward(const X& x) const {
      return downsample(this->blocks(x));
    }
  };

  template <int level>
  struct UpLevel : Level<S.width(level + 1 < S.mult.count ? level + 1 : level), S.width(level), S.blocks + 1,
                         S.attention.has(level)> {
    If<(level > 0), Upsample<S.width(level)>> upsample;
    TESSERA_MEMBERS(UpLevel, block, attn, upsample)

    template <AnyTensor X>
    auto forward(const X& x) const {
      return upsample(this->blocks(x));
    }
  };

  template <template <int> class Of, class>
  struct AllLevels;
  template <template <int> class Of, int... level>
  struct AllLevels<Of, std::integer_sequence<int, level...>> {
    using type = Sequential<Of<level>...>;
  };
  template <template <int> class Of>
  using Levels = typename AllLevels<Of, std::make_integer_sequence<int, S.mult.count>>::type;

  static constexpr std::int64_t last = S.width(S.mult.count - 1);  // width of the smallest map

  struct Middle : Module {
    ResnetBlock<last, last> block_1;
    AttnBlock<last> attn_1;
    ResnetBlock<last, last> block_2;
    TESSERA_MEMBERS(Middle, block_1, attn_1, block_2)

    template <AnyTensor X>
    auto forward(const X& x) const {
      return block_2(attn_1(block_1(x)));
    }
  };

  /// Section 3.1 and table 7 of the paper.
  struct Encoder : Module {
    Conv3x3<S.channels, S.ch> conv_in;
    Levels<DownLevel> down;
    Middle mid;
    Norm<last> norm_out{epsilon};
    Conv3x3<last, S.z> conv_out;
    TESSERA_MEMBERS(Encoder, conv_in, down, mid, norm_out, conv_out)

    template <AnyTensor X>
    auto forward(const X& x) const {
      return conv_out(silu(norm_out(mid(down(conv_in(x))))));
    }
  };

  /// The encoder's levels backwards, up.0 being the finest. There is no tanh behind it.
  struct Decoder : Module {
    Conv3x3<S.z, last> conv_in;
    Middle mid;
    Levels<UpLevel> up;
    Norm<S.width(0)> norm_out{epsilon};
    Conv3x3<S.width(0), S.channels> conv_out;
    TESSERA_MEMBERS(Decoder, conv_in, mid, up, norm_out, conv_out)

    template <AnyTensor X>
    auto forward(const X& x) const {
      return conv_out(silu(norm_out(up.backwards(mid(conv_in(x))))));
    }
  };

  /// The codes, which start uniform in +-1/codes.
  struct Codebook : Module {
    static constexpr auto K = Constant<S.codes>{};
    static constexpr auto D = Constant<S.dim>{};
    Parameter<K, D> weight{uniform(-1.0 / S.codes, 1.0 / S.codes)};
    TESSERA_MEMBERS(Codebook, weight)

    /// The codes of these numbers, [B, h*w], as a map [B, D, h, w].
    template <DimExpression H, DimExpression W, AnyTensor Numbers>
    auto forward(const Numbers& numbers, H h, W w) const {
      return rearrange<"b (y x) d -> b d y x">(gather(weight, integers(numbers)), "y"_is(h), "x"_is(w));
    }
  };

  /// Equation 2 of the paper; van den Oord et al. 2017 (arXiv 1711.00937), equations 1 to 3.
  struct VectorQuantizer : Module {
    Codebook embedding;
    TESSERA_MEMBERS(VectorQuantizer, embedding)

    /// The numbers of the nearest codes of a map [B, D, h, w], row by row: [B, h*w].
    template <AnyTensor Z>
    auto indices(const Z& z) const {
      return nearest(rearrange<"b d y x -> b (y x) d">(z), embedding.weight);
    }
    /// The nearest codes, as a map.
    template <AnyTensor Z>
    auto codes(const Z& z) const {
      if constexpr (poisoned<Z>) {
        return z;
      } else {
        using D = typename Z::dims;
        const PathScope scope(embedding.path);
        return embedding.forward(indices(z), typename D::template at<2>{}, typename D::template at<3>{});
      }
    }
    /// Codes in the place of z, whose gradients go straight through to z.
    template <AnyTensor Z>
    auto forward(const Z& z) const {
      return z + stop_gradient(codes(z) - z);
    }
    /// mean((sg[e] - z)^2) + beta mean((e - sg[z])^2), or with the weights the other way round where S is not legacy.
    template <AnyTensor Z>
    auto loss(const Z& z) const {
      const auto e = codes(z);
      const auto commitment = mean(pow<2>(stop_gradient(e) - z));
      const auto codebook = mean(pow<2>(e - stop_gradient(z)));
      constexpr double beta = S.beta;  // Clang 19 reads another number where S is read as the program runs
      if constexpr (S.legacy)
        return commitment + codebook * beta;
      else
        return commitment * beta + codebook;
    }
  };

  using QuantConv = Conv1x1<S.z, S.dim>;      // from what is encoded to codes
  using PostQuantConv = Conv1x1<S.dim, S.z>;  // and back
};

template <VqganSpec S>
struct VqganAxes {
  static constexpr auto B = axis<"B">;  // the batch, known when the program runs
  static constexpr auto scale = Constant<(std::int64_t{1} << (S.mult.count - 1))>{};  // pixels of a token, each way
  static constexpr auto GH = axis<"GH", Constant<S.image.down>{} / scale>;            // tokens down
  static constexpr auto GW = axis<"GW", Constant<S.image.across>{} / scale>;          // tokens across
  static constexpr auto T = axis<"T", GH * GW>;                                       // tokens
  using Images = Tensor<B, Constant<S.channels>{}, scale * GH, scale * GW>;
};

}  // namespace detail

/// The blocks of one spec: maps are [B, C, height, width].
template <VqganSpec S>
using VqganParts = detail::VqganParts<detail::checked_spec<S>>;

/// The axes that all programs of one spec share.
template <VqganSpec S>
using VqganAxes = detail::VqganAxes<detail::checked_spec<S>>;

/// Images in [-1, 1] -> the same through tokens: encoder, nearest codes, decoder. Keys are those of published
/// checkpoints.
template <VqganSpec S>
struct VqganReconstruct : Module {
  using Axes = VqganAxes<S>;
  using Parts = VqganParts<S>;

  typename Parts::Encoder encoder;
  typename Parts::Decoder decoder;
  typename Parts::VectorQuantizer quantize;
  typename Parts::QuantConv quant_conv;
  typename Parts::PostQuantConv post_quant_conv;
  TESSERA_MEMBERS(VqganReconstruct, encoder, decoder, quantize, quant_conv, post_quant_conv)

  typename Axes::Images forward(typename Axes::Images images) const {
    return decoder(post_quant_conv(quantize(quant_conv(encoder(images)))));
  }
};

/// Images in [-1, 1] -> the numbers of their codes, integers, row by row.
template <VqganSpec S>
struct VqganEncode : Module {
  using Axes = VqganAxes<S>;
  using Parts = VqganParts<S>;

  typename Parts::Encoder encoder;
  typename Parts::VectorQuantizer quantize;
  typename Parts::QuantConv quant_conv;
  TESSERA_MEMBERS(VqganEncode, encoder, quantize, quant_conv)

  Tensor<Axes::B, Axes::T> forward(typename Axes::Images images) const {
    return quantize.indices(quant_conv(encoder(images)));
  }
};

/// Numbers of codes -> the image that they stand for.
template <VqganSpec S>
struct VqganDecode : Module {
  using Axes = VqganAxes<S>;
  using Parts = VqganParts<S>;

  typename Parts::Decoder decoder;
  typename Parts::VectorQuantizer quantize;
  typename Parts::PostQuantConv post_quant_conv;
  TESSERA_MEMBERS(VqganDecode, decoder, quantize, post_quant_conv)

  typename Axes::Images forward(Tensor<Axes::B, Axes::T> tokens) const {
    return decoder(post_quant_conv(quantize.embedding(tokens, Axes::GH, Axes::GW)));
  }
};

}  // namespace tessera::models
