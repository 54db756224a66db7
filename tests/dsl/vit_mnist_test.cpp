// The declaration of vit_mnist, traced: keys and shapes are those of the reference model.
#include "models/vit_mnist.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "dsl/trace.hpp"

namespace {

using namespace tessera;
using graph::Op;

const graph::Graph& traced() {
  static const graph::Graph g = trace<models::vit_mnist::VitMnist>("vit_mnist");
  return g;
}

std::vector<std::int64_t> sizes(const graph::Node& node) {
  std::vector<std::int64_t> s;
  for (const Dim& d : node.shape) s.push_back(d.value(128));
  return s;
}

/// Every parameter by its checkpoint key, layers written out.
std::map<std::string, std::vector<std::int64_t>> parameters() {
  std::map<std::string, std::vector<std::int64_t>> all;
  for (const graph::Node& node : traced().nodes) {
    if (node.op != Op::parameter) continue;
    const int layers = traced().regions[static_cast<std::size_t>(node.region)].count;
    for (int layer = 0; layer < layers; ++layer) {
      std::string name = node.name;
      if (const std::size_t at = name.find("{}"); at != std::string::npos) name.replace(at, 2, std::to_string(layer));
      EXPECT_TRUE(all.emplace(name, sizes(node)).second) << name << " stands twice";
    }
  }
  return all;
}

int count(Op op) {
  int n = 0;
  for (const graph::Node& node : traced().nodes) n += node.op == op;
  return n;
}

// tests/golden/mnist_vit/params.safetensors, written by PyTorch from MnistVit of tests/golden/reference_models.py.
TEST(VitMnist, HasTheKeysAndShapesOfTheReferenceModel) {
  std::map<std::string, std::vector<std::int64_t>> expected = {
      {"class_token", {1, 8}},     {"linear_mapper.weight", {8, 16}},
      {"linear_mapper.bias", {8}}, {"mlp.0.weight", {10, 8}},
      {"mlp.0.bias", {10}},
  };
  for (const std::string layer : {"blocks.0.", "blocks.1."}) {
    for (const std::string norm : {"norm1", "norm2"}) {
      expected[layer + norm + ".weight"] = {8};
      expected[layer + norm + ".bias"] = {8};
    }
    for (const std::string map : {"q_mappings.", "k_mappings.", "v_mappings."})
      for (const std::string head : {"0", "1"}) {
        expected[layer + "mhsa." + map + head + ".weight"] = {4, 4};
        expected[layer + "mhsa." + map + head + ".bias"] = {4};
      }
    expected[layer + "mlp.0.weight"] = {32, 8};
    expected[layer + "mlp.0.bias"] = {32};
    expected[layer + "mlp.2.weight"] = {8, 32};
    expected[layer + "mlp.2.bias"] = {8};
  }
  EXPECT_EQ(parameters(), expected);
}

TEST(VitMnist, IsTracedOnceForBothBlocks) {
  ASSERT_EQ(traced().regions.size(), 2U);
  EXPECT_EQ(traced().regions[1].count, 2);
  EXPECT_EQ(count(Op::layer_norm), 2);
  EXPECT_EQ(count(Op::gelu), 1);
  EXPECT_EQ(count(Op::softmax), 3);  // one a head, one at the end
  EXPECT_EQ(count(Op::einsum), 14);  // 10 linear maps, 2 a head
  EXPECT_EQ(count(Op::table), 1);
}

TEST(VitMnist, TakesImagesAndGivesProbabilities) {
  const graph::Graph& g = traced();
  EXPECT_EQ(sizes(g[0]), (std::vector<std::int64_t>{128, 1, 28, 28}));
  const graph::Node& outputs = g[g.outputs[0].node];
  EXPECT_EQ(outputs.op, Op::softmax);
  EXPECT_EQ(sizes(outputs), (std::vector<std::int64_t>{128, 10}));
}

TEST(VitMnist, HasOtherSizesInALine) {
  using Other = models::MnistVit<{.channels = 3,
                                  .height = 20,
                                  .width = 12,
                                  .patch = 2,
                                  .token = 15,
                                  .heads = 3,
                                  .mlp = 2,
                                  .classes = 7,
                                  .blocks = 4}>;
  const graph::Graph g = trace<Other>("other");
  EXPECT_EQ(sizes(g[0]), (std::vector<std::int64_t>{128, 3, 20, 12}));
  EXPECT_EQ(sizes(g[g.outputs[0].node]), (std::vector<std::int64_t>{128, 7}));
  EXPECT_EQ(g.regions[1].count, 4);
  std::map<std::string, std::vector<std::int64_t>> of;
  for (const graph::Node& node : g.nodes)
    if (node.op == Op::parameter) of[node.name] = sizes(node);
  EXPECT_EQ(of.at("linear_mapper.weight"), (std::vector<std::int64_t>{15, 12}));
  EXPECT_EQ(of.at("blocks.{}.mhsa.q_mappings.2.weight"), (std::vector<std::int64_t>{5, 5}));
  EXPECT_EQ(of.at("blocks.{}.mlp.0.weight"), (std::vector<std::int64_t>{30, 15}));
}

TEST(VitMnist, ScalesScoresByTheRootOfTheHeadsWidth) {
  int scales = 0;
  for (const graph::Node& node : traced().nodes)
    if (node.op == Op::constant) {
      ++scales;
      EXPECT_EQ(node.value, 0.5);
    }
  EXPECT_EQ(scales, 2);
}

TEST(VitMnist, IsTrainedByTheNotebooksRecipe) {
  const graph::Recipe& r = traced().recipe;
  EXPECT_EQ(r.learning_rate, 0.005);
  EXPECT_EQ(r.batch, 128);
  EXPECT_EQ(r.epochs, 5);
}

TEST(VitMnist, DecaysTheWeightsOfLinearMapsOnly) {
  for (const graph::Node& node : traced().nodes) {
    if (node.op != Op::parameter) continue;
    EXPECT_EQ(node.decay, node.shape.size() == 2 && node.name != "class_token") << node.name;
  }
}

}  // namespace
