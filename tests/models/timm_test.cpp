// Reduced instances of timm's architectures: declared, traced, differentiated and interpreted, against golden/timm.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <type_traits>

#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/headless.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/subgraph.hpp"
#include "codegen/passes/verify.hpp"
#include "tests/models/declared/vit_base_patch16_rope_mixed_ape_224.hpp"
#include "tests/models/declared/vit_large_patch16_sapiens2.hpp"
#include "tests/models/declared/vit_srelpos_medium_patch16_224.hpp"
#include "tests/models/timm_golden.hpp"
#include "tests/models/timm_models.hpp"

namespace tessera::test {
namespace {

/// Outputs within 1e-5, every gradient within 1e-4: as differentiated, and as the generator decomposes and simplifies.
void expect_timms_numbers(const std::string& name, const graph::Graph& forward) {
  Arrays given = timm_arrays(name, "params");
  const Arrays outputs = timm_arrays(name, "forward"), gradients = timm_gradients(name);
  given.merge(timm_batch(name));
  const double least = least_of(gradients);
  const graph::Graph differentiated = codegen::differentiate(forward, true);
  const graph::Graph simple = codegen::simplify(codegen::decompose(differentiated));
  for (const auto& [stage, joint] : {std::pair("differentiated", &differentiated), std::pair("simplified", &simple)}) {
    codegen::verify(*joint);
    const Arrays results = interpret(*joint, 2, given);
    const Array& mine = results.at("outputs");
    ASSERT_EQ(mine.shape, outputs.at("outputs").shape);
    const double of_outputs = distance(mine, outputs.at("outputs"), 1e-3);
    EXPECT_LE(of_outputs, 1e-5) << name << ", " << stage;
    double of_gradients = 0;
    for (const auto& [key, theirs] : gradients) {
      ASSERT_TRUE(results.contains(key)) << name << " has no " << key;
      ASSERT_EQ(results.at(key).shape, theirs.shape) << key;
      const double apart = distance(results.at(key), theirs, least);
      EXPECT_LE(apart, 1e-4) << "gradient of " << key << ", " << stage;
      of_gradients = std::max(of_gradients, apart);
    }
    EXPECT_EQ(results.size(), gradients.size() + 3)
        << "more than outputs, loss, and gradients of timm's and grad_output";
    std::printf("  %s, %s: outputs %.1e, gradients %.1e\n", name.c_str(), stage, of_outputs, of_gradients);
  }
}

/// Tokens [B, 1, y x, C] as the map [B, C, y, x] that they are of.
Array map_of(const Array& tokens, const std::vector<std::int64_t>& shape) {
  Array map{shape, std::vector<double>(tokens.numbers.size())};
  const auto channels = static_cast<std::size_t>(shape[1]), pixels = static_cast<std::size_t>(shape[2] * shape[3]);
  for (std::size_t i = 0; i < map.numbers.size(); ++i) {
    const std::size_t image = i / (channels * pixels), channel = i / pixels % channels, pixel = i % pixels;
    map.numbers[i] = tokens.numbers[(image * pixels + pixel) * channels + channel];
  }
  return map;
}

/// What `embed` gives, within 1e-5: features of which timm's head makes timm's outputs or, without a head, which are
/// timm's outputs; tokens that are timm's forward_features where the golden numbers have them; a pooling that is what
/// timm's learned query attends to where they have it, and whose rows sum to one.
void expect_timms_features(const std::string& name, const graph::Graph& recorded) {
  const graph::Graph forward = codegen::subgraph(recorded, {"outputs"});
  Arrays given = timm_arrays(name, "params");
  const Arrays theirs = timm_arrays(name, "forward");
  given.merge(timm_batch(name));
  const std::string head = given.contains("head.fc.weight") ? "head.fc." : "head.";
  ASSERT_EQ(codegen::has_head(forward), given.contains(head + "weight")) << name;
  ASSERT_TRUE(codegen::embeds(forward)) << name;
  const graph::Graph embedding = codegen::embedding(forward);
  codegen::verify(embedding);
  const Arrays results = interpret(embedding, 2, given);
  const Array &features = results.at("features"), &outputs = theirs.at("outputs");
  Array made = features;
  if (outputs.shape.size() == 4 && features.shape[1] == 1) made = map_of(features, outputs.shape);
  const auto width = static_cast<std::size_t>(features.shape.back());
  if (given.contains("head_dist.weight")) {  // two heads, one of them of the second token
    const Array& tokens = results.at("tokens");
    made = Array{{2, features.shape[1]}, {}};
    const std::size_t image = tokens.numbers.size() / 2;
    for (std::size_t i = 0; i < 2 * width; ++i) {
      const std::size_t at = i / width * image + i % width;
      made.numbers.push_back((tokens.numbers[at] + tokens.numbers[at + width]) / 2);
    }
    EXPECT_LE(distance(features, made, 1e-3), 1e-12) << name << ": features";
  } else {
    if (given.contains(head + "weight")) {
      const Array &weight = given.at(head + "weight"), &bias = given.at(head + "bias");
      made = Array{{2, weight.shape[0]}, {}};
      for (std::size_t image = 0; image < 2; ++image)
        for (std::size_t c = 0; c < bias.numbers.size(); ++c) {
          double sum = bias.numbers[c];
          for (std::size_t i = 0; i < width; ++i)
            sum += weight.numbers[c * width + i] * features.numbers[image * width + i];
          made.numbers.push_back(sum);
        }
    }
    ASSERT_EQ(made.shape, outputs.shape) << name;
    EXPECT_LE(distance(made, outputs, 1e-3), 1e-5) << name << ": features";
  }
  std::string compared = "features";
  if (theirs.contains("tokens")) {
    ASSERT_TRUE(results.contains("tokens")) << name;
    ASSERT_EQ(results.at("tokens").shape, theirs.at("tokens").shape) << name;
    EXPECT_LE(distance(results.at("tokens"), theirs.at("tokens"), 1e-3), 1e-5) << name << ": tokens";
    compared += ", tokens";
  }
  EXPECT_EQ(results.contains("pooling"), given.contains("attn_pool.latent")) << name;
  if (results.contains("pooling")) {
    const Array& pooling = results.at("pooling");
    const auto keys = static_cast<std::size_t>(pooling.shape.back());
    for (std::size_t first = 0; first < pooling.numbers.size(); first += keys) {
      double sum = 0;
      for (std::size_t i = 0; i < keys; ++i) sum += pooling.numbers[first + i];
      EXPECT_NEAR(sum, 1, 1e-12) << name;
    }
    compared += ", pooling";
    if (const auto file = timm_folder(name) / "pooling.safetensors"; std::filesystem::exists(file)) {
      const Array of_timm = timm_arrays(name, "pooling").at("pooling");
      ASSERT_EQ(pooling.shape, of_timm.shape) << name;
      const double apart = distance(pooling, of_timm, 1e-3);
      EXPECT_LE(apart, 1e-5) << name << ": pooling";
      std::printf("  %s: pooling %.1e\n", name.c_str(), apart);
    }
  }
  std::printf("  %s: %s\n", name.c_str(), compared.c_str());
}

class Timm : public testing::TestWithParam<TimmModel> {};

TEST_P(Timm, IsWhatTheDeclarationComputes) {
  const TimmModel& model = GetParam();
  if (timm_folder(model.name).empty()) GTEST_SKIP() << "TESSERA_SHARED names no folder with golden/timm/" << model.name;
  const graph::Graph forward = model.record();
  expect_timms_numbers(model.name, forward);
  expect_timms_features(model.name, forward);
}

/// The model, giving these layers.
template <models::Layers chosen, models::VitSpec S, template <class> class Block>
auto giving(const models::Vit<S, Block>*) {
  constexpr models::VitSpec spec = [] {
    models::VitSpec changed = S;
    changed.classes = 0;
    changed.layers = chosen;
    return changed;
  }();
  return std::type_identity<models::Vit<spec, Block>>();
}

/// The last of the layers, all that a model has, is the tokens that it pools.
template <class Model, models::Layers chosen>
void expect_layers_end_with_tokens(const std::string& name) {
  using Dense = typename decltype(giving<chosen>(static_cast<const Model*>(nullptr)))::type;
  Arrays given = timm_arrays(name, "params");
  given.merge(timm_batch(name));
  const Array tokens =
      interpret(codegen::embedding(codegen::subgraph(recorded<Model>(), {"outputs"})), 2, given).at("tokens");
  const Array layers = interpret(codegen::subgraph(recorded<Dense>(), {"outputs"}), 2, given).at("outputs");
  ASSERT_EQ(layers.shape, (std::vector<std::int64_t>{2, chosen.count(), tokens.shape[1], tokens.shape[2]})) << name;
  const std::size_t image = tokens.numbers.size() / 2, all = layers.numbers.size() / 2;
  Array last{tokens.shape, {}}, first = last;
  for (const std::size_t begin : {std::size_t{0}, all}) {
    const auto at = layers.numbers.begin() + static_cast<std::ptrdiff_t>(begin);
    first.numbers.insert(first.numbers.end(), at, at + static_cast<std::ptrdiff_t>(image));
    last.numbers.insert(last.numbers.end(), at + static_cast<std::ptrdiff_t>(all - image),
                        at + static_cast<std::ptrdiff_t>(all));
  }
  EXPECT_LE(distance(last, tokens, 1e-3), 1e-12) << name;
  EXPECT_GT(distance(first, tokens, 1e-3), 1e-3) << name;
}

TEST(TimmLayers, OfBlocksThatShareOrDiffer) {
  using namespace models;
  expect_layers_end_with_tokens<VitBasePatch16RopeMixedApe224, Layers{0, 1}>("vit_base_patch16_rope_mixed_ape_224");
  expect_layers_end_with_tokens<VitSrelposMediumPatch16224, Layers{0, 1}>("vit_srelpos_medium_patch16_224");
  expect_layers_end_with_tokens<VitLargePatch16Sapiens2, Layers{0, 3}>("vit_large_patch16_sapiens2");
}

TEST(TimmPooling, IsThereOfOneInstance) {
  EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(paths::golden) / "timm" /
                                      "vit_so150m_patch16_reg4_map_256" / "pooling.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Timm, testing::ValuesIn(timm_models()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace tessera::test
