// vqgan_discriminator: the discriminator of VQGAN's patches, and its two norms; keys are those of published
// checkpoints.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "dsl/tessera.hpp"

namespace tessera::models {

/// Which mean and variance a batch norm takes: those that its checkpoint holds, or those of the batch that it is given.
enum class Statistics : std::uint8_t { running, batch };

/// (x - mean) / sqrt(variance + epsilon) * weight + bias, a mean and a variance for each channel of [B, C, height,
/// width] (Ioffe, Szegedy 2015). Of the batch they are over all images and positions, and the variance is the biased
/// one. Running ones are read, and nothing here changes them: a model that is trained would train them as weights.
/// PyTorch equivalent: torch.nn.BatchNorm2d(C), in evaluation or in training.
template <Statistics of, DimExpression auto C>
struct BatchNorm : Module {
  static constexpr double epsilon = 1e-5, momentum = 0.1;
  Parameter<C> weight{constant(1)}, bias{constant(0)}, running_mean{constant(0)}, running_var{constant(1)};
  TESSERA_MEMBERS(BatchNorm, weight, bias, running_mean, running_var)

  template <AnyTensor X>
  auto forward(const X& x) const {
    if constexpr (of == Statistics::running)
      return scaled(x - each<X>(running_mean), running_var, x);
    else
      return of_batch(x).y;
  }

  /// What a batch becomes, and what the running statistics become through it, of which the variance is the unbiased
  /// one.
  template <AnyTensor X>
  auto of_batch(const X& x) const {
    const Tensor<C> average = mean<0, 2, 3>(x);
    const auto centred = x - each<X>(average);
    const Tensor<C> variance = mean<0, 2, 3>(centred * centred);
    const auto normed = scaled(centred, variance, x);
    struct Result {
      std::remove_const_t<decltype(normed)> y;
      Tensor<C> running_mean, running_var;
    };
    const auto kept_mean = running_mean * (1 - momentum), kept_var = running_var * (1 - momentum);
    return Result{normed, kept_mean + average * momentum, kept_var + unbiased<X>(variance) * momentum};
  }

 private:
  template <class X, class P>
  static auto each(const P& of_channel) {
    using D = typename X::dims;
    return repeat<"c -> b c y x">(of_channel, "b"_is(typename D::template at<0>{}),
                                  "y"_is(typename D::template at<2>{}), "x"_is(typename D::template at<3>{}));
  }
  template <class Centred, class V, class X>
  auto scaled(const Centred& centred, const V& variance, const X&) const {
    const auto factor = weight / sqrt(variance + epsilon);
    return centred * each<X>(factor) + each<X>(bias);
  }
  /// n / (n - 1) of it, for the n numbers of a channel, of which there are as many as the batch says.
  template <class X>
  static Tensor<C> unbiased(const Tensor<C>& variance) {
    graph::Builder& r = recorder();
    const std::vector<Dim> shape = X::shape.dims();
    const graph::NodeId n = r.extent(shape[0] * shape[2] * shape[3]);
    const graph::NodeId factor = r.divide(n, r.subtract(n, r.constant(1)));
    return Tensor<C>(r.multiply(node_of(variance), factor));
  }
};

/// scale * (x + loc), each of a channel of [B, C, height, width] (Kingma, Dhariwal 2018).
template <DimExpression auto C>
struct ActNorm : Module {
  Parameter<1_c, C, 1_c, 1_c> loc{constant(0)}, scale{constant(1)};
  TESSERA_MEMBERS(ActNorm, loc, scale)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return each<X>(scale) * (x + each<X>(loc));
  }

 private:
  template <class X, class P>
  static auto each(const P& of_channel) {
    using D = typename X::dims;
    return repeat<"1 c 1 1 -> b c y x">(of_channel, "b"_is(typename D::template at<0>{}),
                                        "y"_is(typename D::template at<2>{}), "x"_is(typename D::template at<3>{}));
  }
};

/// What can differ from one to another. The defaults are those of published models.
struct DiscriminatorSpec {
  std::int64_t channels = 3;
  std::int64_t filters = 64;  ///< width of the first convolution; each further one doubles it, up to eight times
  int layers = 3;             ///< with a norm
  enum Norm : std::uint8_t { batch, act } norm = batch;
  Statistics statistics = Statistics::running;  ///< of the batch norms

  constexpr std::int64_t width(int n) const {
    return filters * std::min(std::int64_t{1} << std::min(n, 3), std::int64_t{8});
  }
};

namespace vqgan {

template <class, class>
struct Joined;
template <class... A, class... B>
struct Joined<Sequential<A...>, Sequential<B...>> {
  using type = Sequential<A..., B...>;
};

/// 4x4 convolutions with padding 1. Before a batch norm they have no bias.
template <DiscriminatorSpec S>
struct DiscriminatorLayers {
  static constexpr Convolution how(bool halves) { return {.stride = halves ? 2 : 1, .padding = 1}; }
  template <int n>
  using Width = Constant<S.width(n)>;
  template <int n>
  using Norm =
      std::conditional_t<S.norm == DiscriminatorSpec::act, ActNorm<Width<n>{}>, BatchNorm<S.statistics, Width<n>{}>>;
  template <int n>
  using Conv = std::conditional_t<S.norm == DiscriminatorSpec::act,
                                  Conv2d<Width<n - 1>{}, Width<n>{}, 4_c, 4_c, how(n < S.layers)>,
                                  Conv2dWithoutBias<Width<n - 1>{}, Width<n>{}, 4_c, 4_c, how(n < S.layers)>>;

  template <int n>
  static auto up_to() {
    if constexpr (n == 0) {
      using First = Conv2d<Constant<S.channels>{}, Width<0>{}, 4_c, 4_c, how(true)>;
      return static_cast<Sequential<First, LeakyRelu<0.2>>*>(nullptr);
    } else {
      using Before = std::remove_pointer_t<decltype(up_to<n - 1>())>;
      using More = Sequential<Conv<n>, Norm<n>, LeakyRelu<0.2>>;
      return static_cast<typename Joined<Before, More>::type*>(nullptr);
    }
  }
  using Last = Sequential<Conv2d<Width<S.layers>{}, 1_c, 4_c, 4_c, how(false)>>;
  using type = typename Joined<std::remove_pointer_t<decltype(up_to<S.layers>())>, Last>::type;
};

}  // namespace vqgan

/// PatchGAN (Isola et al. 2017, arXiv 1611.07004, section 3.2.2): images [B, C, height, width] to logits [B, 1,
/// height', width'], one a patch. An image that is too small for its layers is the sentence [convolution-size].
template <DiscriminatorSpec S>
struct NLayerDiscriminator : Module {
  typename vqgan::DiscriminatorLayers<S>::type main;
  TESSERA_MEMBERS(NLayerDiscriminator, main)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return main(x);
  }
};

}  // namespace tessera::models
