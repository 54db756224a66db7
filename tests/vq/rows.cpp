#include "tests/vq/rows.hpp"

#include <tuple>

#include "dsl/tessera.hpp"
#include "examples/vqgan_digits.hpp"
#include "models/vqgan.hpp"
#include "models/vqgan_discriminator.hpp"
#include "models/vqgan_loss.hpp"
#include "tests/models/vqgan_models.hpp"

namespace tessera::test {

namespace {

template <class F>
VqRow make_vq_row(std::string name, std::vector<std::string> inputs, std::vector<std::string> results,
                  std::size_t sloped, F) {
  return {std::move(name), std::move(inputs), std::move(results), sloped,
          [](const std::string& row, std::size_t slopes) {
            using Arguments = typename tessera::detail::Signature<decltype(&F::operator())>::arguments;
            return detail::record_row(F{}, row, static_cast<Arguments*>(nullptr), slopes);
          }};
}

/// Of images x and modules to y.
template <class F>
VqRow x_to_y(std::string name, F f) {
  return make_vq_row(std::move(name), {"x"}, {"y"}, 1, f);
}

constexpr models::VqganSpec in_groups(std::int64_t groups) { return {.groups = groups}; }
using Parts = models::VqganParts<in_groups(1)>;
template <std::int64_t groups, std::int64_t In, std::int64_t Out>
using ResnetBlock = typename models::VqganParts<in_groups(groups)>::template ResnetBlock<In, Out>;

template <bool legacy>
using Quantizer =
    typename models::VqganParts<models::VqganSpec{.dim = 6, .codes = 10, .legacy = legacy}>::VectorQuantizer;
using FewCodes = models::VqganParts<models::VqganSpec{.dim = 2, .codes = 4}>::VectorQuantizer;

/// A quantizer of a codebook that is given.
template <class Q, AnyTensor Table>
Q with_codes(const Table& table) {
  Q q;
  q.embedding.weight.id = node_of(table);
  return q;
}
template <bool legacy>
VqRow quantise(std::string name) {
  return make_vq_row(std::move(name), {"z", "codebook"}, {"y", "loss", "indices"}, 2,
                     [](Tensor<B, 6_c, 3_c, 4_c> z, Tensor<10_c, 6_c> codebook) {
                       const auto q = with_codes<Quantizer<legacy>>(codebook);
                       return std::tuple{q.forward(z), q.loss(z), q.indices(z)};
                     });
}

/// Of logits of real images and of reconstructions.
template <class F>
VqRow losses(std::string name, F) {
  using Logits = Tensor<B, 1_c, 2_c, 2_c>;
  return make_vq_row(std::move(name), {"real", "fake"}, {"y"}, 1,
                     [](Logits real, Logits fake) { return F{}(real, fake); });
}

template <std::int64_t channels>
VqRow lpips(std::string name) {
  using Images = Tensor<B, Constant<channels>{}, 18_c, 17_c>;
  using Metric = models::Lpips<models::LpipsSpec{.widths = {3, 4, 4, 5, 5}}>;
  return make_vq_row(std::move(name), {"a", "b"}, {"y", "stage.0", "stage.1", "stage.2", "stage.3", "stage.4"}, 1,
                     [](Images a, Images b, Metric metric) {
                       const auto s = metric.stages(a, b);
                       return std::tuple{s[0] + s[1] + s[2] + s[3] + s[4], s[0], s[1], s[2], s[3], s[4]};
                     });
}

using SmallImages = models::VqganAxes<small_vqgan>::Images;

/// The discriminator under the keys that it has in a checkpoint.
template <models::Statistics statistics>
using SmallDiscriminator = models::NLayerDiscriminator<{.filters = 8, .layers = 2, .statistics = statistics}>;
template <models::Statistics statistics>
struct LossModule : Module {
  SmallDiscriminator<statistics> discriminator;
  TESSERA_MEMBERS(LossModule, discriminator)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return discriminator(x);
  }
};
template <models::Statistics statistics>
struct Judged : Module {
  LossModule<statistics> loss;
  TESSERA_MEMBERS(Judged, loss)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return loss(x);
  }
};

/// With the metric beside it.
struct GeneratorLossModule : Module {
  SmallDiscriminator<models::Statistics::batch> discriminator;
  models::Lpips<models::LpipsSpec{.widths = {4, 8, 8, 12, 12}}> perceptual_loss;
  TESSERA_MEMBERS(GeneratorLossModule, discriminator, perceptual_loss)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return discriminator(x);
  }
};
struct JudgedAndMeasured : Module {
  GeneratorLossModule loss;
  TESSERA_MEMBERS(JudgedAndMeasured, loss)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return loss(x);
  }
};

template <DimExpression auto G, DimExpression auto C>
struct Norm : GroupNorm<G, C> {
  Norm() : GroupNorm<G, C>(1e-6) {}
};

}  // namespace

std::vector<VqRow> vq_rows() {
  return {
      x_to_y("group_norm_32", [](Tensor<B, 64_c, 5_c, 3_c> x, Norm<32_c, 64_c> f) { return f(x); }),
      x_to_y("group_norm_3", [](Tensor<B, 12_c, 4_c, 7_c> x, Norm<3_c, 12_c> f) { return f(x); }),
      x_to_y("group_norm_shifted", [](Tensor<B, 8_c, 6_c, 6_c> x, Norm<4_c, 8_c> f) { return f(x); }),
      x_to_y("swish", [](Tensor<B> x) { return silu(x); }),
      x_to_y("leaky_relu", [](Tensor<B> x) { return tessera::leaky_relu<0.2>(x); }),
      x_to_y("softplus", [](Tensor<B> x) { return tessera::softplus(x); }),
      x_to_y("downsample_even", [](Tensor<B, 6_c, 8_c, 6_c> x, Parts::Downsample<6> f) { return f(x); }),
      x_to_y("downsample_odd", [](Tensor<B, 4_c, 7_c, 5_c> x, Parts::Downsample<4> f) { return f(x); }),
      x_to_y("upsample", [](Tensor<B, 5_c, 3_c, 4_c> x, Parts::Upsample<5> f) { return f(x); }),
      x_to_y("nearest", [](Tensor<B, 3_c, 3_c, 2_c> x) { return repeat<"b c y x -> b c (y 2) (x 2)">(x); }),
      x_to_y("max_pool", [](Tensor<B, 3_c, 5_c, 6_c> x) { return tessera::max_pool<2>(x); }),
      x_to_y("conv_4x4_stride_2",
             [](Tensor<B, 3_c, 8_c, 6_c> x, Conv2d<3_c, 5_c, 4_c, 4_c, Convolution{.stride = 2, .padding = 1}> f) {
               return f(x);
             }),
      x_to_y("conv_4x4_stride_1",
             [](Tensor<B, 3_c, 4_c, 3_c> x, Conv2dWithoutBias<3_c, 5_c, 4_c, 4_c, Convolution{.padding = 1}> f) {
               return f(x);
             }),
      x_to_y("resnet_block", [](Tensor<B, 8_c, 5_c, 4_c> x, ResnetBlock<4, 8, 8> f) { return f(x); }),
      x_to_y("resnet_block_wider", [](Tensor<B, 8_c, 5_c, 4_c> x, ResnetBlock<4, 8, 12> f) { return f(x); }),
      x_to_y("attn_block",
             [](Tensor<B, 8_c, 4_c, 5_c> x, models::VqganParts<in_groups(2)>::AttnBlock<8> f) { return f(x); }),
      quantise<true>("quantise_published"),
      quantise<false>("quantise_paper"),
      x_to_y("unit_length_with_a_zero", [](Tensor<B, 4_c, 3_c, 3_c> x) { return models::unit_length(x); }),
      losses("hinge_loss", [](const auto& real, const auto& fake) { return models::hinge_loss(real, fake); }),
      losses("vanilla_loss", [](const auto& real, const auto& fake) { return models::vanilla_loss(real, fake); }),
      lpips<3>("lpips"),
      lpips<1>("lpips_one_channel"),
      x_to_y("act_norm",
             [](Tensor<B, 5_c, 4_c, 2_c> x, models::ActNorm<models::Statistics::running, 5_c> f) { return f(x); }),
      make_vq_row("act_norm_first", {"x"}, {"y", "loc", "scale"}, 0,
                  [](Tensor<B, 5_c, 4_c, 2_c> x, models::ActNorm<models::Statistics::batch, 5_c> f) {
                    const auto y = f(x);
                    return std::tuple{y, current(f.loc), current(f.scale)};
                  }),
      make_vq_row("batch_norm_training", {"x"}, {"y", "running_mean", "running_var"}, 1,
                  [](Tensor<B, 6_c, 4_c, 5_c> x, models::BatchNorm<models::Statistics::batch, 6_c> f) {
                    const auto all = f.of_batch(x);
                    return std::tuple{all.y, all.running_mean, all.running_var};
                  }),
      x_to_y("batch_norm_evaluation",
             [](Tensor<B, 6_c, 4_c, 5_c> x, models::BatchNorm<models::Statistics::running, 6_c> f) { return f(x); }),
      make_vq_row("quantise_ties", {"z", "codebook"}, {"indices"}, 0,
                  [](Tensor<B, 2_c, 1_c, 3_c> z, Tensor<4_c, 2_c> codebook) {
                    return with_codes<FewCodes>(codebook).indices(z);
                  }),
      make_vq_row("vqgan_small_discriminator", {"images", "reconstruction"},
                  {"disc_loss", "logits_real", "logits_fake", "disc_loss.hinge", "disc_loss.vanilla"}, 1,
                  [](SmallImages real, SmallImages fake, Judged<models::Statistics::batch> f) {
                    const auto of_real = f(real), of_fake = f(fake);
                    const auto hinge = models::hinge_loss(of_real, of_fake);
                    return std::tuple{hinge, of_real, of_fake, hinge, models::vanilla_loss(of_real, of_fake)};
                  }),
      make_vq_row("vqgan_small_generator", {"images", "d_weight"},
                  {"total_loss", "rec_loss", "p_loss", "nll_loss", "quant_loss", "g_loss"}, 1,
                  [](SmallImages images, Tensor<> d_weight, SmallVqgan f, JudgedAndMeasured by) {
                    const auto z = f.quant_conv(f.encoder(images));
                    const SmallImages y = f.decoder(f.post_quant_conv(f.quantize(z)));
                    const auto metric = by.loss.perceptual_loss(images, y);
                    const Tensor<> codebook = f.quantize.loss(z);
                    const auto fake = by(y);
                    const auto loss = models::generator_loss(
                        images, y, Tensor<>(mean(metric)), fake, codebook,
                        [&](const Tensor<>&, const Tensor<>& g) { return stop_gradient(d_weight) * g; });
                    return std::tuple{loss.total, loss.rec, metric, loss.nll, codebook, loss.g};
                  }),
      make_vq_row("vqgan_small_evaluation", {"images"}, {"logits_real.evaluation"}, 0,
                  [](SmallImages real, Judged<models::Statistics::running> f) { return f(real); }),
      make_vq_row("digits_trained", {"tokens"}, {"images"}, 0,
                  [](Tensor<B, models::VqganAxes<models::vqgan_digits>::T> tokens,
                     models::VqganDecode<models::vqgan_digits> f) { return f(tokens); }),
      make_vq_row("vqgan_small", {"images"}, {"encoder", "z", "indices", "codes", "reconstruction"}, 0,
                  [](SmallImages images, SmallVqgan f) {
                    const auto encoder = f.encoder(images);
                    const auto z = f.quant_conv(encoder);
                    const auto reconstruction = f.decoder(f.post_quant_conv(f.quantize(z)));
                    return std::tuple{encoder, z, f.quantize.indices(z), f.quantize.codes(z), reconstruction};
                  }),
  };
}

std::vector<RecordedRow> recorded_vq_rows() {
  std::vector<RecordedRow> all;
  for (const VqRow& row : vq_rows()) all.push_back(row.values());
  for (const VqRow& row : vq_rows())
    if (row.sloped) all.push_back(row.gradients());
  return all;
}

}  // namespace tessera::test
