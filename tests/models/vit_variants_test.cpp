// The named models of models/vit.hpp: sizes and keys are those of the published checkpoints. (golden_test.cpp compares
// the numbers of small variants with PyTorch's.)
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "dsl/contract.hpp"
#include "dsl/trace.hpp"
#include "models/eva.hpp"
#include "models/vit.hpp"
#include "models/vit_cifar.hpp"
#include "models/vit_relpos.hpp"

namespace {

using namespace tessera;
using namespace tessera::models;

// timm's vit_{tiny,small,base,large}_patch16_224 and vit_huge_patch14_224
static_assert(parameter_count<VitTiny>() == 5'717'416);
static_assert(parameter_count<VitSmall>() == 22'050'664);
static_assert(parameter_count<VitBase>() == 86'567'656);
static_assert(parameter_count<VitLarge>() == 304'326'632);
static_assert(parameter_count<VitHuge>() == 632'045'800);

// ViT-S/16 without its class token and its positions.
static_assert(parameter_count<SimpleVitSmall>() == 22'050'664 - 384 - 197 * 384);

/// What is before the head: timm's checkpoints of DINOv2 have none.
template <class Model>
constexpr std::int64_t backbone = parameter_count<Model>() - parameter_count<decltype(Model::head)>();

// timm's vit_{small,base,large,giant}_patch14_reg4_dinov2: 22.06, 86.58, 304.37 and 1136.48 million
static_assert(backbone<Dinov2Small> == 22'057'344);
static_assert(backbone<Dinov2Base> == 86'582'016);
static_assert(backbone<Dinov2Large> == 304'370'688);
static_assert(backbone<Dinov2Giant> == 1'136'483'840);

// timm's deit_{tiny,base}_distilled_patch16_224
static_assert(parameter_count<Vit<{.distilled = true}>>() == 5'910'800);
static_assert(parameter_count<Vit<{.width = 768, .heads = 12, .distilled = true}>>() == 87'338'192);

template <class Model>
std::set<std::string> keys() {
  std::set<std::string> all;
  for (const graph::Node& node : trace<Model>("model").nodes)
    if (node.op == graph::Op::parameter) all.insert(node.name);
  return all;
}

TEST(VitVariants, ANamedModelHasTimmsKeys) {
  EXPECT_EQ(keys<VitHuge>(), (std::set<std::string>{"patch_embed.proj.weight",
                                                    "patch_embed.proj.bias",
                                                    "cls_token",
                                                    "pos_embed",
                                                    "blocks.{}.norm1.weight",
                                                    "blocks.{}.norm1.bias",
                                                    "blocks.{}.attn.qkv.weight",
                                                    "blocks.{}.attn.qkv.bias",
                                                    "blocks.{}.attn.proj.weight",
                                                    "blocks.{}.attn.proj.bias",
                                                    "blocks.{}.norm2.weight",
                                                    "blocks.{}.norm2.bias",
                                                    "blocks.{}.mlp.fc1.weight",
                                                    "blocks.{}.mlp.fc1.bias",
                                                    "blocks.{}.mlp.fc2.weight",
                                                    "blocks.{}.mlp.fc2.bias",
                                                    "norm.weight",
                                                    "norm.bias",
                                                    "head.weight",
                                                    "head.bias"}));
}

/// What the model gives of two images, and of how many numbers an image.
template <class Model>
std::vector<std::int64_t> outputs_of_two() {
  const graph::Graph g = trace<Model>("model");
  std::vector<std::int64_t> extents;
  for (const graph::Output& output : g.outputs)
    if (output.name == "outputs")
      for (const Dim& d : g[output.node].shape) extents.push_back(d.normal.value(2));
  return extents;
}

TEST(VitVariants, WithoutClassesItGivesFeaturesAndHasNoLoss) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ((outputs_of_two<Vit<{.classes = 0}>>()), (Sizes{2, 192}));
  EXPECT_EQ((outputs_of_two<Vit<{.classes = 0, .features = Features::tokens}>>()), (Sizes{2, 197, 192}));
  EXPECT_EQ((outputs_of_two<Vit<{.classes = 0, .features = Features::both}>>()), (Sizes{2, 198, 192}));
  std::set<std::string> expected = keys<VitTiny>();
  expected.erase("head.weight");
  expected.erase("head.bias");
  using Tokens = Vit<{.classes = 0, .features = Features::tokens}>;
  EXPECT_EQ(keys<Tokens>(), expected);
  EXPECT_EQ(trace<Tokens>("model").outputs.size(), 1U);
}

template <class V>
using SharedTable = SharedRelativeBlock<V, 16>;
template <class V>
using TwoKinds = Stacks<Stack<VitBlock<V>, 1>, Stack<VitBlock<V>, 2>, Stack<VitBlock<V, Attention<V>, SwiGlu<V>>, 1>>;

/// The stacks of a model, and how many blocks each has.
template <class Model>
std::set<std::string> stacks_of() {
  std::set<std::string> all;
  for (const graph::Region& region : trace<Model>("model").regions)
    if (region.path.starts_with("blocks")) all.insert(region.path + ": " + std::to_string(region.count));
  return all;
}

TEST(VitVariants, GivesChosenLayersOfAnyBlocks) {
  using Sizes = std::vector<std::int64_t>;
  using Dense = Vit<{.classes = 0, .layers = {2, 5, 8, 11}}>;
  EXPECT_EQ((outputs_of_two<Dense>()), (Sizes{2, 4, 197, 192}));
  EXPECT_EQ(stacks_of<Dense>(),
            (std::set<std::string>{"blocks.0-2: 3", "blocks.3-5: 3", "blocks.6-8: 3", "blocks.9-11: 3"}));
  EXPECT_EQ(parameter_count<Dense>(), parameter_count<Vit<{.classes = 0}>>());
  EXPECT_EQ(trace<Dense>("model").outputs.size(), 1U);
  // Blocks that share a table, that have a slice each of a tensor, and that differ.
  EXPECT_EQ((outputs_of_two<Vit<{.depth = 4, .classes = 0, .layers = {1, 3}}, SharedTable>>()),
            (Sizes{2, 2, 197, 192}));
  EXPECT_EQ((outputs_of_two<Vit<{.depth = 4, .classes = 0, .layers = {3, 0}}, RopeMixedBlock>>()),
            (Sizes{2, 2, 197, 192}));
  EXPECT_EQ((outputs_of_two<Vit<{.depth = 4, .classes = 0, .layers = {2, 3}}, TwoKinds>>()), (Sizes{2, 2, 197, 192}));
}

TEST(VitVariants, DinoV2AddsRegistersAndLayerScale) {
  std::set<std::string> expected = keys<VitHuge>();
  expected.insert({"reg_token", "blocks.{}.ls1.gamma", "blocks.{}.ls2.gamma"});
  EXPECT_EQ(keys<Dinov2Small>(), expected);
  EXPECT_EQ(keys<Dinov2Giant>(), expected);
}

TEST(VitVariants, SimpleVitHasNeitherAClassTokenNorLearnedPositions) {
  std::set<std::string> expected = keys<VitHuge>();
  expected.erase("cls_token");
  expected.erase("pos_embed");
  EXPECT_EQ(keys<SimpleVitSmall>(), expected);
}

TEST(VitVariants, NormsAndBiasesHaveKeysWhereTheyAre) {
  std::set<std::string> expected = keys<VitHuge>();
  for (const char* key : {"blocks.{}.attn.qkv.bias", "norm.weight", "norm.bias"}) expected.erase(key);
  expected.insert({"fc_norm.weight", "fc_norm.bias", "pre_logits.fc.weight", "pre_logits.fc.bias"});
  for (const char* norm : {"q_norm", "k_norm"})
    for (const char* part : {"weight", "bias"}) expected.insert(std::string("blocks.{}.attn.") + norm + "." + part);
  using Model = Vit<{.qkv_bias = false, .qk_norm = true, .final_norm = FinalNorm::after_pooling, .representation = 64}>;
  EXPECT_EQ(keys<Model>(), expected);
}

/// The rates of all dropouts, in the order in which they are recorded.
template <class Model>
std::vector<double> rates() {
  std::vector<double> all;
  for (const graph::Node& node : trace<Model>("model").nodes)
    if (node.op == graph::Op::dropout) all.push_back(node.value);
  return all;
}

TEST(VitVariants, DropRatesOfZeroRecordNothing) { EXPECT_EQ(rates<VitTiny>(), std::vector<double>{}); }

TEST(VitVariants, TokensBranchesAndProbabilitiesDropAtTheirRates) {
  using Model = Vit<{.dropout = 0.1, .attention_dropout = 0.2, .drop_path = 0.3}>;
  EXPECT_EQ(rates<Model>(), (std::vector<double>{0.1, 0.2, 0.1, 0.3, 0.1, 0.1, 0.3}));
}

TEST(VitVariants, TheCifarVitDropsAsItsNotebookDoes) {
  EXPECT_EQ(rates<CifarVit<CifarVitSpec{}>>(), (std::vector<double>{0.2, 0.2, 0.2, 0.2}));
}

}  // namespace
