// dpt: the Dense Prediction Transformer of Ranftl et al. 2021, "Vision Transformers for Dense Prediction", which tells
// how far away each pixel is, with keys and numbers of Hugging Face's DPTForDepthEstimation and
// DepthAnythingForDepthEstimation.
//
// A Vision Transformer gives the tokens of four layers, of which the head makes four maps, from fine to coarse, and
// fuses them one after the other to one number a pixel. Depth Anything, Yang et al. 2024, first and second version, is
// such a head over a DINOv2.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "models/vit.hpp"

namespace tessera::models {

/// What becomes of the class token.
enum class Readout : std::uint8_t {
  ignored,    ///< nothing
  projected,  ///< each patch is mapped together with it: key neck.reassemble_stage.readout_projects
};

/// What can differ in the head. The defaults are those of Depth Anything's small models.
struct DptSpec {
  std::int64_t maps[4] = {48, 96, 192, 384};  ///< channels of the maps of the four layers, the first the finest
  std::int64_t fusion = 64;                   ///< channels of the maps that are fused; even
  std::int64_t hidden = 32;                   ///< channels before the last layer
  Readout readout = Readout::ignored;
  double farthest = 0;  ///< metres that the model can tell; 0: it tells inverse depth, up to factor and offset
};

namespace detail {

/// Preprocessing as that of Depth Anything's models: both sides are scaled.
struct DepthInput {
  static constexpr Preprocessing input{
      .mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 1, .fit = Fit::squash};
};

/// What does not go together in a model of depth.
template <VitSpec S, DptSpec P>
struct DepthProblem {
  constexpr Text operator()() const {
    Text t;
    const auto has = [&](std::int64_t count, const char* what) {
      if (count < 1 && t.size == 0) t.put("a DPT head has ").put(count).put(" ").put(what).put(", needs at least 1");
    };
    for (const std::int64_t channels : P.maps) has(channels, "channels in a map");
    has(P.fusion, "channels of fused maps");
    has(P.hidden, "channels before its last layer");
    if (t.size == 0 && P.fusion % 2)
      t.put("a DPT head halves the channels of fused maps, and ").put(P.fusion).put(" is odd");
    if (t.size == 0 && P.readout == Readout::projected && !S.class_token)
      t.put("a DPT head reads the class token, and the encoder has none; did you mean .readout = Readout::ignored?");
    if (t.size == 0 && P.farthest < 0) t.put("the farthest depth is at least 0 m");
    if (t.size == 0 && (S.rest.height || S.rest.width))
      t.put("a DPT head tells of each pixel how far it is away, and the encoder leaves out those of .rest");
    if (t.size == 0 && S.layers.count() != 4) {
      t.put("a DPT head fuses the maps of four layers, and the encoder gives ").put(std::int64_t{S.layers.count()});
      if (S.depth >= 4 && S.depth <= 64) {
        t.put("; did you mean .layers = {");
        for (int i = 1; i <= 4; ++i) t.put(std::int64_t{S.depth * i / 4 - 1}).put(i < 4 ? ", " : "}?");
      }
    }
    if (t.size) t.put(" [dpt-spec]");
    return t;
  }
};

}  // namespace detail

/// Adds to a map what two convolutions make of it, each behind a ReLU: He et al. 2016 (pre-activation).
template <auto F>
struct PreActivationResidual : Module {
  using Layer = Conv2d<F, F, 3_c, 3_c, Convolution{.padding = 1}>;
  Layer convolution1, convolution2;
  TESSERA_MEMBERS(PreActivationResidual, convolution1, convolution2)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return x + convolution2(relu(convolution1(relu(x))));
  }
};

/// Adds a layer's map to the coarser one that is fused already, and scales the sum up. The projection comes before the
/// pixels between the known ones, which are the same weighted means of what it gives, and there are fewer to project.
template <auto F, auto Height, auto Width, bool first>
struct FeatureFusion : Module {
  Conv2d<F, F, 1_c, 1_c> projection;
  If<!first, PreActivationResidual<F>> residual_layer1;
  PreActivationResidual<F> residual_layer2;
  TESSERA_MEMBERS(FeatureFusion, projection, residual_layer1, residual_layer2)

  template <AnyTensor Map>
  auto forward(const Map& map) const {
    return resize<Height, Width>(projection(residual_layer2(map)));
  }
  template <AnyTensor Fused, AnyTensor Map>
  auto forward(const Fused& fused, const Map& map) const {
    return forward(fused + residual_layer1(map));
  }
};

/// The patches of a layer as a map of so many channels, enlarged or reduced by `resize`.
template <class V, auto C, class Resize>
struct Reassembled : Module {
  Conv2d<V::D, C, 1_c, 1_c> projection;
  Resize resize;
  TESSERA_MEMBERS(Reassembled, projection, resize)

  auto forward(Tensor<V::B, V::N, V::D> patches) const {
    return resize(projection(rearrange<"b (y x) d -> b d y x">(patches, "y"_is(V::GH))));
  }
};

/// The class token beside each patch, mapped to one token.
template <class V>
using ReadoutProjection = Sequential<Linear<2_c * V::D, V::D>, Gelu>;

/// The maps of four layers, fused: tokens [B, T, D] each -> [B, F, 8 GH, 8 GW].
template <class V, DptSpec P>
struct DptNeck : Module {
  static constexpr auto F = axis<"F", P.fusion>;
  static constexpr auto C0 = axis<"C0", P.maps[0]>, C1 = axis<"C1", P.maps[1]>;
  static constexpr auto C2 = axis<"C2", P.maps[2]>, C3 = axis<"C3", P.maps[3]>;
  template <auto C>
  using ToFusion = Conv2dWithoutBias<C, F, 3_c, 3_c, Convolution{.padding = 1}>;

  /// Tokens of four layers as maps, from fine to coarse.
  struct Reassemble : Module {
    Sequential<Reassembled<V, C0, ConvTranspose2d<C0, C0, 4_c>>, Reassembled<V, C1, ConvTranspose2d<C1, C1, 2_c>>,
               Reassembled<V, C2, Identity>,
               Reassembled<V, C3, Conv2d<C3, C3, 3_c, 3_c, Convolution{.stride = 2, .padding = 1}>>>
        layers;
    using Projection = ReadoutProjection<V>;
    If<P.readout == Readout::projected, Sequential<Projection, Projection, Projection, Projection>> readout_projects;
    TESSERA_MEMBERS(Reassemble, layers, readout_projects)

    template <class T>
    auto forward(const T& a, const T& b, const T& c, const T& d) const {
      return std::tuple{layers.template at<0>()(patches<0>(a)), layers.template at<1>()(patches<1>(b)),
                        layers.template at<2>()(patches<2>(c)), layers.template at<3>()(patches<3>(d))};
    }

   private:
    template <int i>
    Tensor<V::B, V::N, V::D> patches(const typename V::Tokens& tokens) const {
      const auto those = slice<1>(tokens, V::FRONT, V::N);
      if constexpr (P.readout == Readout::projected) {
        const auto token = repeat<"b d -> b n d">(take<1>(tokens, 0_c), "n"_is(V::N));
        return readout_projects.template at<i>()(concat<2>(those, token));
      } else {
        return those;
      }
    }
  };
  /// From coarse to fine.
  struct Fusion : Module {
    Sequential<FeatureFusion<F, V::GH, V::GW, true>, FeatureFusion<F, 2_c * V::GH, 2_c * V::GW, false>,
               FeatureFusion<F, 4_c * V::GH, 4_c * V::GW, false>, FeatureFusion<F, 8_c * V::GH, 8_c * V::GW, false>>
        layers;
    TESSERA_MEMBERS(Fusion, layers)

    template <class A, class B, class C, class D>
    auto forward(const A& a, const B& b, const C& c, const D& d) const {
      const auto coarse = layers.template at<0>()(d);
      const auto finer = layers.template at<1>()(coarse, c);
      const auto fine = layers.template at<2>()(finer, b);
      return layers.template at<3>()(fine, a);
    }
  };

  Reassemble reassemble_stage;
  Sequential<ToFusion<C0>, ToFusion<C1>, ToFusion<C2>, ToFusion<C3>> convs;
  Fusion fusion_stage;
  TESSERA_MEMBERS(DptNeck, reassemble_stage, convs, fusion_stage)

  auto forward(typename V::Tokens first, typename V::Tokens second, typename V::Tokens third,
               typename V::Tokens last) const {
    const auto [a, b, c, d] = reassemble_stage(first, second, third, last);
    const auto coarsest = convs.template at<3>()(d);
    const auto coarse = convs.template at<2>()(c);
    const auto fine = convs.template at<1>()(b);
    const auto finest = convs.template at<0>()(a);
    return fusion_stage(finest, fine, coarse, coarsest);
  }
};

/// What is fused as one number a pixel: [B, F, y, x] -> [B, IH, IW].
template <class V, auto F, DptSpec P>
struct DepthHead : Module {
  static constexpr auto HALF = axis<"HALF", P.fusion / 2>;
  static constexpr auto E = axis<"E", P.hidden>;
  Conv2d<F, HALF, 3_c, 3_c, Convolution{.padding = 1}> conv1;
  Conv2d<HALF, E, 3_c, 3_c, Convolution{.padding = 1}> conv2;
  Conv2d<E, 1_c, 1_c, 1_c> conv3;
  TESSERA_MEMBERS(DepthHead, conv1, conv2, conv3)

  template <AnyTensor X>
  Tensor<V::B, V::IH, V::IW> forward(const X& fused) const {
    const auto numbers = conv3(relu(conv2(resize<V::IH, V::IW>(conv1(fused)))));
    const auto each = rearrange<"b 1 y x -> b y x">(numbers);
    if constexpr (P.farthest > 0)
      return sigmoid(each) * P.farthest;
    else
      return relu(each);
  }
};

/// Images [B, C, IH, IW] -> [B, IH, IW]: of each pixel the inverse depth, 0 and above, up to a factor and an offset
/// that differ from image to image; of a head with a farthest depth the depth in metres. The encoder gives four layers
/// and has no classes. Sentences: [dpt-spec], [vit-spec].
template <VitSpec Asked, DptSpec Head = DptSpec{}>
struct Dpt : Module, detail::DepthInput {
  using Problem = detail::DepthProblem<Asked, Head>;
  static constexpr VitSpec S = checked<Problem, Asked, VitSpec{.classes = 0, .layers = {2, 5, 8, 11}}>;
  static constexpr DptSpec P = fits<Problem> ? Head : DptSpec{};
  using V = VitAxes<S>;
  static constexpr Depth depth = P.farthest > 0 ? Depth::metres : Depth::inverse;

  /// Its keys are the model's.
  struct Encoder : Vit<S> {
    static constexpr bool is_part = true;
  };

  Encoder encoder;
  DptNeck<V, P> neck;
  DepthHead<V, DptNeck<V, P>::F, P> head;
  TESSERA_MEMBERS(Dpt, encoder, neck, head)

  Tensor<V::B, V::IH, V::IW> forward(Tensor<V::B, V::C, V::IH, V::IW> images) const {
    const auto [a, b, c, d] = encoder.layers(images);
    return head(neck(a, b, c, d));
  }
};

/// Ranftl et al.'s own, as Intel/dpt-large has it.
struct DptLarge : Dpt<{.image = 384,
                       .width = 1024,
                       .heads = 16,
                       .depth = 24,
                       .classes = 0,
                       .final_norm = FinalNorm::none,
                       .layers = {5, 11, 17, 23},
                       .epsilon = 1e-12},
                      {.maps = {256, 512, 1024, 1024}, .fusion = 256, .readout = Readout::projected}> {
  static constexpr Preprocessing input{.mean = 0.5, .deviation = 0.5, .crop = 1, .fit = Fit::squash};
};

/// The encoders of Depth Anything's second version.
constexpr VitSpec depth_anything_encoder(std::int64_t width, std::int64_t heads, int depth, Layers layers) {
  return {.image = 518,
          .patch = 14,
          .width = width,
          .heads = heads,
          .depth = depth,
          .classes = 0,
          .layer_scale = 1,
          .layers = layers};
}
using DepthAnythingSmall = Dpt<depth_anything_encoder(384, 6, 12, {2, 5, 8, 11})>;
using DepthAnythingBase =
    Dpt<depth_anything_encoder(768, 12, 12, {2, 5, 8, 11}), {.maps = {96, 192, 384, 768}, .fusion = 128}>;
using DepthAnythingLarge =
    Dpt<depth_anything_encoder(1024, 16, 24, {4, 11, 17, 23}), {.maps = {256, 512, 1024, 1024}, .fusion = 256}>;

}  // namespace tessera::models
