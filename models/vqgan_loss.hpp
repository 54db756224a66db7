// vqgan_loss: what VQGAN's images are judged by: a perceptual metric, and the losses of a discriminator's logits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>

#include "dsl/tessera.hpp"

namespace tessera::models {

/// 0.5 (mean max(0, 1 - real) + mean max(0, 1 + fake)), of the logits that a discriminator gives to real images and to
/// reconstructions.
template <AnyTensor Real, AnyTensor Fake>
Tensor<> hinge_loss(const Real& real, const Fake& fake) {
  const auto of_real = mean(relu(1.0 - real));
  return (of_real + mean(relu(fake + 1.0))) * 0.5;
}

/// 0.5 (mean softplus(-real) + mean softplus(fake)), as hinge_loss: Goodfellow et al. 2014, of logits.
template <AnyTensor Real, AnyTensor Fake>
Tensor<> vanilla_loss(const Real& real, const Fake& fake) {
  const auto of_real = mean(softplus(-real));
  return (of_real + mean(softplus(fake))) * 0.5;
}

/// What the generator makes small, and its parts (the paper's equations 5 to 7).
struct GeneratorLoss {
  Tensor<> rec;    ///< mean |x - y|
  Tensor<> nll;    ///< rec + perceptual weight * mean of the metric over images
  Tensor<> g;      ///< -mean of the logits of reconstructions
  Tensor<> total;  ///< nll + adversarial weight * g + codebook weight * the codebook's loss
};

/// Of images and their reconstructions, the mean of the metric between them, the discriminator's logits of the
/// reconstructions, the codebook's loss, and what makes the adversarial part of nll and g.
template <AnyTensor X, AnyTensor Logits, class Adversarial>
GeneratorLoss generator_loss(const X& images, const X& reconstruction, const Tensor<>& metric, const Logits& fake,
                             const Tensor<>& codebook, const Adversarial& adversarial, double perceptual_weight = 1,
                             double codebook_weight = 1) {
  const Tensor<> rec = mean(abs(images - reconstruction));
  const Tensor<> nll = rec + metric * perceptual_weight;
  const Tensor<> g = -mean(fake);
  const Tensor<> weighed = adversarial(nll, g);
  return {rec, nll, g, nll + weighed + codebook * codebook_weight};
}

/// |d nll / d L| / (|d g / d L| + 1e-4), at most 1e4, for the layer L that both gradients pass last: the paper's
/// equation 7. No gradient flows through it.
template <AnyTensor L>
Tensor<> adaptive_weight(const Tensor<>& nll, const Tensor<>& g, const L& layer) {
  if constexpr (poisoned<L>) {
    return nll;
  } else {
    const auto norm = [&](const Tensor<>& of) {
      const auto slope = stop_gradient(gradient(of, layer));
      return sqrt(sum(slope * slope));
    };
    const Tensor<> of_nll = norm(nll);
    return minimum(of_nll / (norm(g) + 1e-4), Tensor<>(recorder().constant(1e4)));
  }
}

/// f / (|f| + 1e-10) over the channels of a map [B, C, height, width]. The length of a vector of zeros is a constant,
/// so that its gradient is a number.
template <AnyTensor F>
auto unit_length(const F& f) {
  const auto square = sum<1>(f * f);
  const auto length = where(square, sqrt(where(square, square, 1.0)), 0.0);
  return f / repeat<"b y x -> b c y x">(length + 1e-10, "c"_is(typename F::dims::template at<1>{}));
}

/// What can differ from one metric to another: the widths of VGG16's five stages.
struct LpipsSpec {
  std::array<std::int64_t, 5> widths{64, 128, 256, 512, 512};
};

/// Zhang et al. 2018 (arXiv 1801.03924), equation 1, version 0.1: VGG16's features of unit length, squared differences
/// weighed a channel, mean over positions, sum over the five stages. Two images [B, 3 or 1, height, width] in [-1, 1]
/// -> [B, 1, 1, 1].
template <LpipsSpec S>
struct Lpips : Module {
  /// [-1, 1] to what VGG16 was trained on; one channel stands for three.
  struct ScalingLayer : Module {
    Parameter<1_c, 3_c, 1_c, 1_c> shift{constant(0)}, scale{constant(1)};
    TESSERA_MEMBERS(ScalingLayer, shift, scale)

    template <AnyTensor X>
    auto forward(const X& x) const {
      if constexpr (X::shape[1] == Dim::constant(1)) {
        return forward(repeat<"b 1 y x -> b c y x">(x, "c"_is(3_c)));
      } else {
        return (x - spread<X>(shift)) / spread<X>(scale);
      }
    }

   private:
    template <class X, class P>
    static auto spread(const P& of_channel) {
      using D = typename X::dims;
      return repeat<"1 c 1 1 -> b c y x">(of_channel, "b"_is(typename D::template at<0>{}),
                                          "y"_is(typename D::template at<2>{}), "x"_is(typename D::template at<3>{}));
    }
  };

  /// 3x3 convolutions with ReLU behind each; behind the first stage every one begins with a pooling. Keys are counted
  /// over the whole trunk, in which ReLUs and poolings count: the first is path.`at`.
  template <std::int64_t In, std::int64_t Out, std::size_t count, int at>
  struct Slice {
    template <std::int64_t From>
    using Conv = Conv2d<Constant<From>{}, Constant<Out>{}, 3_c, 3_c, Convolution{.padding = 1}>;
    Conv<In> first;
    std::array<Conv<Out>, count - 1> others;

    void bind(const std::string& path) {
      const auto key = [&](std::size_t conv) {
        return tessera::detail::join(path, std::to_string(at + 2 * static_cast<int>(conv)));
      };
      tessera::bind(first, key(0));
      for (std::size_t i = 1; i < count; ++i) tessera::bind(others[i - 1], key(i));
    }

    template <AnyTensor X>
    auto operator()(const X& x) const {
      auto y = relu(first(x));
      for (const Conv<Out>& conv : others) y = relu(conv(y));
      return y;
    }
  };

  struct Net : Module {
    Slice<3, S.widths[0], 2, 0> slice1;
    Slice<S.widths[0], S.widths[1], 2, 5> slice2;
    Slice<S.widths[1], S.widths[2], 3, 10> slice3;
    Slice<S.widths[2], S.widths[3], 3, 17> slice4;
    Slice<S.widths[3], S.widths[4], 3, 24> slice5;
    TESSERA_MEMBERS(Net, slice1, slice2, slice3, slice4, slice5)

    template <AnyTensor X>
    auto forward(const X& x) const {
      const auto one = slice1(x);
      const auto two = slice2(max_pool<2>(one));
      const auto three = slice3(max_pool<2>(two));
      const auto four = slice4(max_pool<2>(three));
      return std::tuple{one, two, three, four, slice5(max_pool<2>(four))};
    }
  };

  template <std::size_t stage>
  struct Lin : Module {
    Sequential<Identity, Conv2dWithoutBias<Constant<S.widths[stage]>{}, 1_c, 1_c, 1_c>> model;
    TESSERA_MEMBERS(Lin, model)

    /// How far features of one stage are from others, of each image.
    template <AnyTensor F>
    auto forward(const F& a, const F& b) const {
      const auto difference = unit_length(a) - unit_length(b);
      return reduce<"b c y x -> b c 1 1", "mean">(model(difference * difference));
    }
  };

  ScalingLayer scaling_layer;
  Net net;
  Lin<0> lin0;
  Lin<1> lin1;
  Lin<2> lin2;
  Lin<3> lin3;
  Lin<4> lin4;
  TESSERA_MEMBERS(Lpips, scaling_layer, net, lin0, lin1, lin2, lin3, lin4)

  /// The five stages' parts of the metric.
  template <AnyTensor X>
  auto stages(const X& a, const X& b) const {
    const auto [a1, a2, a3, a4, a5] = net(scaling_layer(a));
    const auto [b1, b2, b3, b4, b5] = net(scaling_layer(b));
    const Stage<X> one = lin0(a1, b1);
    const Stage<X> two = lin1(a2, b2);
    const Stage<X> three = lin2(a3, b3);
    const Stage<X> four = lin3(a4, b4);
    const Stage<X> five = lin4(a5, b5);
    return std::array{one, two, three, four, five};
  }
  template <AnyTensor X>
  auto forward(const X& a, const X& b) const {
    const auto all = stages(a, b);
    return all[0] + all[1] + all[2] + all[3] + all[4];
  }

 private:
  template <class X>
  using Stage = Tensor<typename X::dims::template at<0>{}, 1_c, 1_c, 1_c>;
};

}  // namespace tessera::models
