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

/// n / (n - 1) of a variance a channel of X, [B, C, height, width], for the n numbers of a channel, of which there are
/// as many as the batch says.
template <AnyTensor X, auto C>
Tensor<C> unbiased(const Tensor<C>& variance) {
  graph::Builder& r = recorder();
  const std::vector<Dim> shape = X::shape.dims();
  const graph::NodeId n = r.extent(shape[0] * shape[2] * shape[3]);
  const graph::NodeId factor = r.divide(n, r.subtract(n, r.constant(1)));
  return Tensor<C>(r.multiply(node_of(variance), factor));
}

/// (x - mean) / sqrt(variance + epsilon) * weight + bias, a mean and a variance for each channel of [B, C, height,
/// width] (Ioffe, Szegedy 2015). Of the batch they are over all images and positions, and the variance is the biased
/// one, and a half of a training step moves the running ones, which are buffers, towards them.
/// PyTorch equivalent: torch.nn.BatchNorm2d(C), in evaluation or in training.
template <Statistics of, DimExpression auto C>
struct BatchNorm : Module {
  static constexpr double epsilon = 1e-5, momentum = 0.1;
  Parameter<C> weight{normal(1, 0.02)}, bias{constant(0)};
  Buffer<C> running_mean{constant(0)}, running_var{constant(1)};
  Buffer<> num_batches_tracked{constant(0)};
  TESSERA_MEMBERS(BatchNorm, weight, bias, running_mean, running_var, num_batches_tracked)

  template <AnyTensor X>
  auto forward(const X& x) const {
    if constexpr (of == Statistics::running)
      return scaled(x - each<X>(running_mean), running_var, x);
    else
      return tracked(x);
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
    const auto kept_mean = current(running_mean) * (1 - momentum), kept_var = current(running_var) * (1 - momentum);
    return Result{normed, kept_mean + average * momentum, kept_var + unbiased<X>(variance) * momentum};
  }

 private:
  template <class X>
  auto tracked(const X& x) const {
    const auto result = of_batch(x);
    assign(running_mean, result.running_mean);
    assign(running_var, result.running_var);
    assign(num_batches_tracked, current(num_batches_tracked) + 1.0);
    return result.y;
  }
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
};

/// scale * (x + loc), each of a channel of [B, C, height, width] (Kingma, Dhariwal 2018). The first batch that it sees
/// in training sets loc = -mean and scale = 1 / (deviation + 1e-6), of which the deviation is the unbiased one: where
/// statistics are those of the batch, as in the first half of a step, whose other half trains both.
template <Statistics of, DimExpression auto C>
struct ActNorm : Module {
  Parameter<1_c, C, 1_c, 1_c> loc{constant(0)}, scale{constant(1)};
  Buffer<> initialized{constant(0)};
  TESSERA_MEMBERS(ActNorm, loc, scale, initialized)

  template <AnyTensor X>
  auto forward(const X& x) const {
    if constexpr (of == Statistics::batch) set_by_first(x);
    return each<X>(current(scale)) * (x + each<X>(current(loc)));
  }

  /// Gives loc and scale the values that the first batch sets, unless one has.
  template <AnyTensor X>
  void set_by_first(const X& x) const {
    using Of = Tensor<1_c, C, 1_c, 1_c>;
    const auto channels = [](const auto& numbers) { return rearrange<"c -> 1 c 1 1">(numbers); };
    const Tensor<C> average = mean<0, 2, 3>(x);
    const auto centred = x - each<X>(channels(average));
    const Tensor<C> deviation = sqrt(unbiased<X>(Tensor<C>(mean<0, 2, 3>(centred * centred))));
    const Tensor<> was_set = current(initialized);
    const Of now = where(was_set, current(loc), stop_gradient(channels(-average)));
    const Of factor = where(was_set, current(scale), stop_gradient(channels(1.0 / (deviation + 1e-6))));
    assign(loc, now);
    assign(scale, factor);
    assign(initialized, Tensor<>(recorder().constant(1)));
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
  Statistics statistics = Statistics::running;  ///< of the norms

  constexpr std::int64_t width(int n) const {
    return filters * std::min(std::int64_t{1} << std::min(n, 3), std::int64_t{8});
  }
};

namespace vqgan {

/// What of a DiscriminatorSpec is none.
template <DiscriminatorSpec S>
struct DiscriminatorProblem {
  constexpr Text operator()() const {
    Text t;
    if (S.filters < 1)
      t.put("a discriminator has ").put(S.filters).put(" filters, needs at least 1 [vqgan-spec]");
    else if (S.layers < 0)
      t.put("a discriminator has ").put(std::int64_t{S.layers}).put(" layers, needs at least 0 [vqgan-spec]");
    return t;
  }
};

template <class, class>
struct Joined;
template <class... A, class... B>
struct Joined<Sequential<A...>, Sequential<B...>> {
  using type = Sequential<A..., B...>;
};

/// A convolution whose weights start as published: N(0, 0.02).
template <class Conv>
struct StartedSmall : Conv {
  StartedSmall() { this->weight.start = normal(0, 0.02); }
};

/// 4x4 convolutions with padding 1. Before a batch norm they have no bias.
template <DiscriminatorSpec S>
struct DiscriminatorLayers {
  static constexpr Convolution how(bool halves) { return {.stride = halves ? 2 : 1, .padding = 1}; }
  template <int n>
  using Width = Constant<S.width(n)>;
  template <int n>
  using Norm = std::conditional_t<S.norm == DiscriminatorSpec::act, ActNorm<S.statistics, Width<n>{}>,
                                  BatchNorm<S.statistics, Width<n>{}>>;
  template <int n>
  using Conv =
      StartedSmall<std::conditional_t<S.norm == DiscriminatorSpec::act,
                                      Conv2d<Width<n - 1>{}, Width<n>{}, 4_c, 4_c, how(n < S.layers)>,
                                      Conv2dWithoutBias<Width<n - 1>{}, Width<n>{}, 4_c, 4_c, how(n < S.layers)>>>;

  template <int n>
  static auto up_to() {
    if constexpr (n == 0) {
      using First = StartedSmall<Conv2d<Constant<S.channels>{}, Width<0>{}, 4_c, 4_c, how(true)>>;
      return static_cast<Sequential<First, LeakyRelu<0.2>>*>(nullptr);
    } else {
      using Before = std::remove_pointer_t<decltype(up_to<n - 1>())>;
      using More = Sequential<Conv<n>, Norm<n>, LeakyRelu<0.2>>;
      return static_cast<typename Joined<Before, More>::type*>(nullptr);
    }
  }
  using Last = Sequential<StartedSmall<Conv2d<Width<S.layers>{}, 1_c, 4_c, 4_c, how(false)>>>;
  using type = typename Joined<std::remove_pointer_t<decltype(up_to<S.layers>())>, Last>::type;
};

}  // namespace vqgan

/// PatchGAN (Isola et al. 2017, arXiv 1611.07004, section 3.2.2): images [B, C, height, width] to logits [B, 1,
/// height', width'], one a patch. Sentences: [vqgan-spec]; of an image
/// that is too small for its layers, [convolution-size].
template <DiscriminatorSpec S>
struct NLayerDiscriminator : Module {
  static constexpr DiscriminatorSpec checked_spec =
      checked<vqgan::DiscriminatorProblem<S>, S, DiscriminatorSpec{.channels = S.channels, .layers = 0}>;
  typename vqgan::DiscriminatorLayers<checked_spec>::type main;
  TESSERA_MEMBERS(NLayerDiscriminator, main)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return main(x);
  }
};

}  // namespace tessera::models
