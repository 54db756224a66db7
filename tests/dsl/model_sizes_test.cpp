// The declared models at their published sizes, traced: they hold as many numbers as the reference models do.
// (tests/models compares keys and shapes with PyTorch's, at small sizes.)
#include <gtest/gtest.h>

#include <cstdint>

#include "dsl/trace.hpp"
#include "examples/cifar10.hpp"
#include "examples/mnist.hpp"
#include "models/vit.hpp"
#include "models/vit_cifar.hpp"
#include "models/vit_notebook.hpp"

namespace {

using namespace tessera;

template <class Model>
std::int64_t parameters() {
  const graph::Graph g = trace<Model>("model");
  std::int64_t total = 0;
  for (const graph::Node& node : g.nodes) {
    if (node.op != graph::Op::parameter) continue;
    std::int64_t count = g.regions[static_cast<std::size_t>(node.region)].count;
    for (const Dim& dim : node.shape) count *= dim.value();
    total += count;
  }
  return total;
}

// timm's vit_{tiny,small,base,large}_patch16_224
TEST(ModelSizes, VitTinySmallBaseAndLargeHaveTimmsParameterCounts) {
  EXPECT_EQ(parameters<models::VitTiny>(), 5'717'416);
  EXPECT_EQ(parameters<models::VitSmall>(), 22'050'664);
  EXPECT_EQ(parameters<models::VitBase>(), 86'567'656);
  EXPECT_EQ(parameters<models::VitLarge>(), 304'326'632);
}

// CifarVit() and NotebookVit() of tests/golden/reference_models.py
TEST(ModelSizes, TheNotebooksModelsHaveTheReferenceModelsParameterCounts) {
  EXPECT_EQ(parameters<models::CifarVit<models::CifarVitSpec{}>>(), 3'195'146);
  EXPECT_EQ(parameters<models::NotebookVit<models::NotebookVitSpec{}>>(), 29'985'034);
}

// docs/how-to/train-on-real-data.md
TEST(ModelSizes, TheRecipesForRealDataAreOfTheModelsThatTheirPageSpeaksOf) {
  EXPECT_EQ(parameters<models::Mnist>(), 139'018);
  EXPECT_EQ(parameters<models::Cifar10>(), 546'186);
}

TEST(ModelSizes, AVitIsTracedOnceForAllItsBlocks) {
  const graph::Graph g = trace<models::VitLarge>("model");
  ASSERT_EQ(g.regions.size(), 2U);
  EXPECT_EQ(g.regions[1].count, 24);
  EXPECT_EQ(g.nodes.size(), trace<models::VitTiny>("model").nodes.size());
}

}  // namespace
