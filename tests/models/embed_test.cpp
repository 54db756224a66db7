// What emitted models embed, for each instruction set that this processor has, with one and with two threads: features
// of which the head makes PyTorch's outputs (tests/golden), and the tokens that features are pooled from.
#include <gtest/gtest.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "map_sam.h"
#include "runtime/arena.hpp"
#include "runtime/philox.hpp"
#include "runtime/safetensors.hpp"
#include "tests/models/instruction_sets.hpp"
#include "tests/paths.hpp"
#include "vit_mnist.h"
#include "vit_registers.h"
#include "vit_simple.h"
#include "vit_tiny_small.h"

namespace tessera::test {
namespace {

using runtime::Safetensors;

struct Embeds {
  std::string golden, head;  ///< folder below tests/golden; key of the last linear map
  bool probabilities;        ///< outputs are softmax(head(features))
  std::int64_t pooled;       ///< features are the mean of so many tokens, the last ones; 0: the first token
  std::span<const tessera_parameter> parameters;
  std::int64_t parameter_floats, packed_floats, feature_floats, token_floats;
  std::int64_t (*bytes)(std::int64_t batch);
  const char* (*isa)();
  int (*pack)(const float* parameters, float* packed);
  int (*embed)(const float* parameters, const float* packed, const float* images, std::int64_t batch, float* features,
               float* tokens, float* pooling, void* scratch);
};
void PrintTo(const Embeds* model, std::ostream* out) { *out << model->golden; }

#define EMBEDS(name, NAME, golden, head, probabilities, pooled)                                                        \
  Embeds {                                                                                                             \
    golden, head, probabilities, pooled, name##_parameters, NAME##_PARAMETER_FLOATS, NAME##_PACKED_FORWARD_FLOATS,     \
        NAME##_FEATURE_FLOATS, NAME##_TOKEN_FLOATS,                                                                    \
        [](std::int64_t b) -> std::int64_t { return NAME##_EMBED_SCRATCH_BYTES(b); }, name##_isa, name##_pack_forward, \
        name##_embed                                                                                                   \
  }
const Embeds models[] = {EMBEDS(vit_mnist, VIT_MNIST, "mnist_vit", "mlp.0", true, 0),
                         EMBEDS(vit_tiny_small, VIT_TINY_SMALL, "vit_tiny_small", "head", false, 0),
                         EMBEDS(vit_registers, VIT_REGISTERS, "variants/vit_registers", "head", false, 0),
                         EMBEDS(vit_simple, VIT_SIMPLE, "variants/vit_simple", "head", false, 8)};

class Embed : public testing::TestWithParam<std::tuple<const Embeds*, std::string, int>> {};

TEST_P(Embed, OfFeaturesTheHeadMakesPyTorchsOutputsAndTokensAreWhatIsPooled) {
  const auto& [model, isa, threads] = GetParam();
  setenv("TESSERA_ISA", isa.c_str(), 1);
  if (model->isa() != isa) GTEST_SKIP() << "this processor cannot run " << isa;
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
  const auto golden = [&](const std::string& file) {
    return runtime::read_safetensors(std::string(paths::golden) + "/" + model->golden + "/" + file + ".safetensors");
  };
  const Safetensors parameters = golden("params");
  std::vector<float> arena(static_cast<std::size_t>(model->parameter_floats), 0);
  for (const tessera_parameter& row : model->parameters) {
    const std::vector<float> values = parameters.at(row.name).floats();
    std::copy(values.begin(), values.end(), arena.begin() + row.offset);
  }
  const std::vector<float> images = golden("batch").at("images").floats();
  const std::vector<float> outputs = golden("forward").at("outputs").floats();
  const std::size_t batch = golden("batch").at("labels").integers().size();
  const auto width = static_cast<std::size_t>(model->feature_floats), classes = outputs.size() / batch,
             of_image = static_cast<std::size_t>(model->token_floats);
  std::vector<float> packed(static_cast<std::size_t>(model->packed_floats), NAN), features(batch * width, NAN),
      tokens(batch * of_image, NAN);
  ASSERT_EQ(model->pack(arena.data(), packed.data()), 0);
  const runtime::Arena scratch(model->bytes(static_cast<std::int64_t>(batch)), 64);
  float none = 0;
  ASSERT_EQ(model->embed(model->packed_floats ? nullptr : arena.data(), packed.data(), images.data(),
                         static_cast<std::int64_t>(batch), features.data(), tokens.data(), &none, scratch.data()),
            0);
  const std::vector<float> weight = parameters.at(model->head + ".weight").floats(),
                           bias = parameters.at(model->head + ".bias").floats();
  double largest = 0, from_tokens = 0;
  for (std::size_t image = 0; image < batch; ++image) {
    std::vector<double> made(bias.begin(), bias.end());
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      for (std::size_t i = 0; i < width; ++i) made[c] += double(weight[c * width + i]) * features[image * width + i];
      sum += std::exp(made[c]);
    }
    for (std::size_t c = 0; c < classes; ++c)
      largest = std::max(largest, std::fabs((model->probabilities ? std::exp(made[c]) / sum : made[c]) -
                                            double(outputs[image * classes + c])));
    for (std::size_t i = 0; i < width; ++i) {
      double pooled = 0;
      const std::size_t count = of_image / width, end = model->pooled ? count : 1,
                        first = model->pooled ? count - static_cast<std::size_t>(model->pooled) : 0;
      for (std::size_t t = first; t < end; ++t) pooled += tokens[image * of_image + t * width + i];
      pooled /= static_cast<double>(end - first);
      from_tokens = std::max(from_tokens, std::fabs(pooled - double(features[image * width + i])));
    }
  }
  std::printf("  %s on %s: outputs of the head %.1e, features from tokens %.1e\n", model->golden.c_str(), isa.c_str(),
              largest, from_tokens);
  EXPECT_LE(largest, 2e-5);
  EXPECT_LE(from_tokens, 1e-5);
  unsetenv("TESSERA_ISA");
}

INSTANTIATE_TEST_SUITE_P(Models, Embed,
                         testing::Combine(testing::Values(&models[0], &models[1], &models[2], &models[3]),
                                          testing::ValuesIn(instruction_sets), testing::Values(1, 2)));

class EmbedMap : public testing::TestWithParam<std::string> {};

TEST_P(EmbedMap, TokensOfAFeatureMapAreItsPixels) {
  setenv("TESSERA_ISA", GetParam().c_str(), 1);
  if (map_sam_isa() != GetParam()) GTEST_SKIP() << "this processor cannot run " << GetParam();
  constexpr std::int64_t batch = 2, channels = 12, pixels = 6 * 4;
  static_assert(MAP_SAM_TOKEN_FLOATS == channels * pixels && MAP_SAM_OUTPUT_FLOATS == channels * pixels);
  std::vector<float> parameters(MAP_SAM_PARAMETER_FLOATS), packed(MAP_SAM_PACKED_FORWARD_FLOATS),
      images(batch * MAP_SAM_IMAGE_FLOATS), map(batch * channels * pixels, NAN), features(map.size(), NAN),
      tokens(map.size(), NAN);
  ASSERT_EQ(map_sam_init(parameters.data(), 3), 0);
  runtime::Random random(5, 0, 0);
  for (float& pixel : images) pixel = static_cast<float>(random.uniform(-1, 1));
  ASSERT_EQ(map_sam_pack_forward(parameters.data(), packed.data()), 0);
  const runtime::Arena of_forward(MAP_SAM_FORWARD_SCRATCH_BYTES(batch), 64),
      of_embed(MAP_SAM_EMBED_SCRATCH_BYTES(batch), 64);
  ASSERT_EQ(map_sam_forward(nullptr, packed.data(), images.data(), batch, map.data(), of_forward.data()), 0);
  float none = 0;
  ASSERT_EQ(map_sam_embed(nullptr, packed.data(), images.data(), batch, features.data(), tokens.data(), &none,
                          of_embed.data()),
            0);
  std::vector<float> turned(map.size());
  for (std::int64_t image = 0; image < batch; ++image)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t p = 0; p < pixels; ++p)
        turned[static_cast<std::size_t>((image * pixels + p) * channels + c)] =
            map[static_cast<std::size_t>((image * channels + c) * pixels + p)];
  EXPECT_EQ(tokens, turned);
  EXPECT_EQ(features, turned);
  EXPECT_NE(*std::max_element(map.begin(), map.end()), 0);
  unsetenv("TESSERA_ISA");
}

INSTANTIATE_TEST_SUITE_P(Isas, EmbedMap, testing::ValuesIn(instruction_sets),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera::test
