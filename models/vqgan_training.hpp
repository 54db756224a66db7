// vqgan_training: the two phases of VQGAN's training step. Each is a model over all keys of a published checkpoint, and
// trains its own; between the two there is one set of parameters.
#pragma once

#include <cstdint>
#include <type_traits>

#include "dsl/tessera.hpp"
#include "models/vqgan.hpp"
#include "models/vqgan_discriminator.hpp"
#include "models/vqgan_loss.hpp"

namespace tessera::models {

/// What can differ from one training to another. The defaults are those of published models.
struct VqganTrainingSpec {
  VqganSpec vqgan{};
  std::int64_t filters = 64;  ///< of the discriminator, as its layers and norm: see DiscriminatorSpec
  int layers = 3;
  DiscriminatorSpec::Norm norm = DiscriminatorSpec::batch;
  enum Gan : std::uint8_t { hinge, vanilla } gan = hinge;
  LpipsSpec vgg{};
  double perceptual_weight = 1;  ///< 0: there is no metric, and no key of it
  double disc_weight = 1;
  double codebook_weight = 1;
  Optimizer generator{.learning_rate = 2e-4, .beta1 = 0.5, .beta2 = 0.9};
  Optimizer discriminator = generator;
  std::int64_t batch = 32;
};

/// What stands under `loss` in a checkpoint; called, the discriminator's logits.
template <VqganTrainingSpec S, Statistics statistics>
struct VqganLoss : Module {
  NLayerDiscriminator<DiscriminatorSpec{.channels = detail::checked_spec<S.vqgan>.channels,
                                        .filters = S.filters,
                                        .layers = S.layers,
                                        .norm = S.norm,
                                        .statistics = statistics}>
      discriminator;
  If<(S.perceptual_weight > 0), Frozen<Lpips<S.vgg>>> perceptual_loss;
  TESSERA_MEMBERS(VqganLoss, discriminator, perceptual_loss)

  template <AnyTensor X>
  auto forward(const X& images) const {
    return discriminator(images);
  }
};

/// The members of both phases.
template <VqganTrainingSpec S, Statistics statistics>
struct VqganPhase : Module {
  using Axes = VqganAxes<S.vqgan>;
  using Parts = VqganParts<S.vqgan>;
  using Images = typename Axes::Images;

  typename Parts::Encoder encoder;
  typename Parts::Decoder decoder;
  typename Parts::VectorQuantizer quantize;
  typename Parts::QuantConv quant_conv;
  typename Parts::PostQuantConv post_quant_conv;
  VqganLoss<S, statistics> loss;

  static constexpr Recipe trained(int which, Optimizer optimizer) {
    return {.optimizer = optimizer,
            .batch = S.batch,
            .phase = {which, {Keys::outside("loss"), Keys::within("loss.discriminator")}}};
  }
};

/// The first phase: encoder, decoder and codes learn. Its outputs are those of VqganEncode, tokens. Its factor is that
/// of the adversarial part, which is 0 until the discriminator has started.
template <VqganTrainingSpec S>
struct VqganGenerator : VqganPhase<S, Statistics::batch> {
  using Phase = VqganPhase<S, Statistics::batch>;
  using Axes = typename Phase::Axes;
  using Images = typename Phase::Images;
  static constexpr Recipe recipe = Phase::trained(1, S.generator);
  TESSERA_MEMBERS(VqganGenerator, encoder, decoder, quantize, quant_conv, post_quant_conv, loss)

  Tensor<Axes::B, Axes::T> forward(Images images) const {
    return this->quantize.indices(this->quant_conv(this->encoder(images)));
  }

  /// The paper's equations 5 to 7, with a number for each part of the sum.
  Losses losses(Images images, Tensor<> factor) const {
    const auto z = this->quant_conv(this->encoder(images));
    const Images y = this->decoder(this->post_quant_conv(this->quantize(z)));
    const Tensor<> codebook = this->quantize.loss(z), metric = measured(images, y);
    Tensor<> d_weight;
    // The discriminator's gradient with respect to the images is what d_weight is made of. The sum of its products with
    // them has the gradients of g: through the discriminator goes one backward pass, and not a second one with
    // d_weight.
    const auto adversarial = [&](const Tensor<>& nll, const Tensor<>& g) {
      d_weight = adaptive_weight(nll, g, phase_parameter<"decoder.conv_out.weight">(*this)) * S.disc_weight;
      const Tensor<> pull = sum(stop_gradient(gradient(g, y)) * y);
      const Tensor<> same = stop_gradient(g) + (pull - stop_gradient(pull));
      return Tensor<>(d_weight * factor * same);
    };
    const auto fake = this->loss.discriminator(y);
    const GeneratorLoss all =
        generator_loss(images, y, metric, fake, codebook, adversarial, S.perceptual_weight, S.codebook_weight);
    Losses result{all.total,
                  {{"total_loss", all.total},
                   {"nll_loss", all.nll},
                   {"rec_loss", all.rec},
                   {"quant_loss", codebook},
                   {"g_loss", all.g},
                   {"d_weight", d_weight}}};
    if constexpr (S.perceptual_weight > 0) result.reported.emplace_back("p_loss", metric);
    return result;
  }

 private:
  Tensor<> measured(const Images& images, const Images& y) const {
    if constexpr (S.perceptual_weight > 0)
      return mean(this->loss.perceptual_loss(images, y));
    else
      return Tensor<>(recorder().constant(0));
  }
};

/// The norms of a discriminator that learns: of ActNorm the first phase has set the start.
template <VqganTrainingSpec S>
inline constexpr Statistics learning = S.norm == DiscriminatorSpec::batch ? Statistics::batch : Statistics::running;

/// The second phase: the discriminator learns from images and from what is reconstructed of them, each a batch of its
/// own. Its outputs are those of VqganReconstruct. Its factor is that of the loss.
template <VqganTrainingSpec S>
struct VqganDiscriminator : VqganPhase<S, learning<S>> {
  using Phase = VqganPhase<S, learning<S>>;
  using Images = typename Phase::Images;
  static constexpr Recipe recipe = Phase::trained(2, S.discriminator);
  TESSERA_MEMBERS(VqganDiscriminator, encoder, decoder, quantize, quant_conv, post_quant_conv, loss)

  Images forward(Images images) const {
    return this->decoder(this->post_quant_conv(this->quantize(this->quant_conv(this->encoder(images)))));
  }

  Losses losses(Images images, Tensor<> factor) const {
    const Images y = forward(images);
    const auto real = this->loss.discriminator(images);
    const auto fake = this->loss.discriminator(y);
    const Tensor<> gan = S.gan == VqganTrainingSpec::hinge ? hinge_loss(real, fake) : vanilla_loss(real, fake);
    const Tensor<> minimised = gan * factor;
    return {minimised, {{"disc_loss", minimised}, {"logits_real", mean(real)}, {"logits_fake", mean(fake)}}};
  }
};

}  // namespace tessera::models
