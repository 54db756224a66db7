// The declared vit_mnist, traced, differentiated and interpreted, against the numbers that PyTorch made.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "codegen/passes/canonical_order.hpp"
#include "codegen/passes/dead_slices.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/optimizer.hpp"
#include "codegen/passes/print.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/subgraph.hpp"
#include "codegen/passes/verify.hpp"
#include "dsl/trace.hpp"
#include "models/vit_mnist.hpp"
#include "runtime/safetensors.hpp"
#include "tests/codegen/support/interpreter.hpp"
#include "tests/paths.hpp"

namespace tessera::test {
namespace {

constexpr std::int64_t batch = 4;

/// The floats or integers of one golden file, by name.
Arrays golden(const std::string& file) {
  Arrays arrays;
  const auto path = std::filesystem::path(paths::golden) / "mnist_vit" / (file + ".safetensors");
  for (const auto& [name, tensor] : runtime::read_safetensors(path).tensors) {
    Array array{tensor.shape, {}};
    if (tensor.dtype == "F32")
      array.numbers = tensor.doubles();
    else
      for (std::int64_t label : tensor.integers()) array.numbers.push_back(static_cast<double>(label));
    arrays[name] = std::move(array);
  }
  return arrays;
}

void expect_near(const Array& mine, const Array& theirs, double tolerance, const std::string& name) {
  ASSERT_EQ(mine.numbers.size(), theirs.numbers.size()) << name;
  double most = 0;
  for (std::size_t i = 0; i < mine.numbers.size(); ++i)
    most = std::max(most, std::fabs(mine.numbers[i] - theirs.numbers[i]));
  EXPECT_LE(most, tolerance) << name;
}

graph::Graph traced() { return codegen::canonical_order(trace<models::vit_mnist::VitMnist>("vit_mnist")); }

/// Whether outputs, loss and every gradient of the joint graph are PyTorch's.
void expect_golden(const graph::Graph& joint) {
  ASSERT_NO_THROW(codegen::verify(joint)) << codegen::print(joint);
  Arrays given = golden("params");
  given.merge(golden("batch"));
  const Arrays results = interpret(joint, batch, given);
  expect_near(results.at("outputs"), golden("forward").at("outputs"), 1e-6, "outputs");
  for (const auto& [name, theirs] : golden("backward")) {
    const std::string mine = name == "grad_input" ? "images" : name;
    ASSERT_TRUE(results.contains(mine)) << mine;
    expect_near(results.at(mine), theirs, name == "loss" ? 1e-6 : 1e-5, mine);
  }
}

TEST(GraphGolden, TheTracedModelDifferentiatedGivesPyTorchsOutputsLossAndGradients) {
  expect_golden(codegen::differentiate(traced(), true));
}

TEST(GraphGolden, DecomposingAndSimplifyingTheModelKeepsPyTorchsNumbers) {
  const graph::Graph joint = codegen::decompose(codegen::differentiate(traced(), true));
  expect_golden(joint);
  const graph::Graph simple = codegen::simplify(joint);
  expect_golden(simple);
  EXPECT_LT(simple.nodes.size(), joint.nodes.size());
}

TEST(GraphGolden, LeavingOutWhatNobodyReadsKeepsPyTorchsNumbers) {
  const graph::Graph narrow = codegen::eliminate_dead_slices(traced());
  EXPECT_EQ(narrow.regions[1].count, traced().regions[1].count - 1);
  expect_golden(codegen::differentiate(narrow, true));
}

TEST(GraphGolden, TheForwardSubgraphNeedsNoLabels) {
  const graph::Graph forward = codegen::subgraph(codegen::differentiate(traced(), false), {"outputs"});
  codegen::verify(forward);
  Arrays given = golden("params");
  given["images"] = golden("batch").at("images");
  const Arrays results = interpret(forward, batch, given);
  ASSERT_EQ(results.size(), 1u);
  expect_near(results.at("outputs"), golden("forward").at("outputs"), 1e-6, "outputs");
}

/// The arrays of these names one after the other: an arena.
Array flat(const Arrays& arrays, const Arrays& names) {
  Array arena;
  for (const auto& [name, unused] : names)
    arena.numbers.insert(arena.numbers.end(), arrays.at(name).numbers.begin(), arrays.at(name).numbers.end());
  return arena;
}

TEST(GraphGolden, TenAdamStepsOfTheGraphsFollowPyTorchsLossesAndParameters) {
  const graph::Graph joint = codegen::simplify(codegen::decompose(codegen::differentiate(traced(), false)));
  const Arrays parameters = golden("params"), theirs = golden("adam");
  Arrays given = parameters;
  given.merge(golden("batch"));
  Array moment1 = flat(parameters, parameters);
  std::fill(moment1.numbers.begin(), moment1.numbers.end(), 0.0);
  Array moment2 = moment1;
  const auto reals = static_cast<std::int64_t>(moment1.numbers.size());
  const graph::Graph update = codegen::simplify(codegen::optimizer(joint.recipe, reals, "vit_mnist"));
  ASSERT_NO_THROW(codegen::verify(update)) << codegen::print(update);
  for (int step = 1; step <= 10; ++step) {
    const Arrays results = interpret(joint, batch, given);
    EXPECT_NEAR(results.at("loss").numbers[0], theirs.at("losses").numbers[static_cast<std::size_t>(step - 1)], 1e-5)
        << step;
    const double rate = joint.recipe.learning_rate / (1 - std::pow(joint.recipe.beta1, step));
    const double second = 1 / std::sqrt(1 - std::pow(joint.recipe.beta2, step));
    const Arrays updated = interpret(update, 1,
                                     {{"parameters", flat(given, parameters)},
                                      {"gradients", flat(results, parameters)},
                                      {"moment1", moment1},
                                      {"moment2", moment2},
                                      {"learning_rate_corrected", {{}, {rate}}},
                                      {"second_correction", {{}, {second}}}});
    moment1 = updated.at("moment1");
    moment2 = updated.at("moment2");
    auto next = updated.at("parameters").numbers.begin();
    for (const auto& [name, unused] : parameters)
      for (double& number : given[name].numbers) number = *next++;
    if (step == 3)
      for (const auto& [name, unused] : parameters) {
        // The keys' biases move every score of a row alike, so their true gradient is zero, and Adam scales the
        // rounding of whoever computed it up to a step: all that can be said is that no step is longer than the
        // learning rate.
        const bool noise = name.find("k_mappings") != std::string::npos && name.ends_with("bias");
        expect_near(given[name], theirs.at(name), noise ? 6 * joint.recipe.learning_rate : 1e-5, name);
      }
  }
}

}  // namespace
}  // namespace tessera::test
