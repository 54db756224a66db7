// The declared models that are no classifiers, traced, differentiated and interpreted in double precision, against the
// numbers that PyTorch made.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/verify.hpp"
#include "models/scalar_graph.hpp"
#include "models/self_attention_2d.hpp"
#include "models/sentence_attention.hpp"
#include "runtime/safetensors.hpp"
#include "tests/codegen/support/interpreter.hpp"
#include "tests/paths.hpp"

namespace tessera::test {
namespace {

Arrays golden(const std::string& file) {
  Arrays arrays;
  const auto path = std::filesystem::path(paths::golden) / (file + ".safetensors");
  for (const auto& [name, tensor] : runtime::read_safetensors(path).tensors)
    arrays[name] = {tensor.shape, tensor.doubles()};
  return arrays;
}

void expect_near(const Array& mine, const Array& theirs, double tolerance, const std::string& name) {
  ASSERT_EQ(mine.shape, theirs.shape) << name;
  for (std::size_t i = 0; i < theirs.numbers.size(); ++i)
    ASSERT_NEAR(mine.numbers.at(i), theirs.numbers[i], tolerance) << name << " at " << i;
}

/// A graph that is being recorded by hand, for models that trace() is not made for.
struct Recording {
  graph::Graph graph;
  graph::Builder builder{graph};
  RecorderScope scope{builder};

  void value(const std::string& name, graph::NodeId node) {
    graph.outputs.push_back({graph::Output::Kind::value, name, node, graph::none});
  }
  void loss(graph::NodeId node) { graph.outputs.push_back({graph::Output::Kind::loss, "loss", node, graph::none}); }

  /// As it is differentiated, and as the generator simplifies it.
  std::vector<graph::Graph> differentiated() const {
    std::vector<graph::Graph> graphs{codegen::differentiate(graph, true)};
    graphs.push_back(codegen::simplify(codegen::decompose(graphs.front())));
    for (const graph::Graph& g : graphs) codegen::verify(g);
    return graphs;
  }
};

// tests/golden/self_attention_2d: SelfAttention2d(32, head_dim=8, value_dim=4, heads=4) on [2, 32, 6, 5]
TEST(SelfAttention2d, GivesPyTorchsOutputsAndGradientsForAGivenGradientOfTheOutputs) {
  using Model = models::SelfAttention2d<{.channels = 32, .height = 6, .width = 5, .heads = 4, .head = 8, .value = 4}>;
  using Maps = Tensor<Model::B, Model::D, Model::FH, Model::FW>;
  Recording r;
  Model model;
  const Maps x(r.builder.input("x", Maps::shape.dims())), gradient(r.builder.input("grad_output", Maps::shape.dims()));
  bind(model, "");
  const Maps outputs = model(x);
  r.value("outputs", node_of(outputs));
  // The loss whose gradient with respect to the outputs is the given one.
  r.loss(r.builder.reduce(graph::Op::reduce_sum, node_of(outputs * gradient), {0, 1, 2, 3}));

  Arrays given = golden("self_attention_2d/params");
  given.merge(golden("self_attention_2d/batch"));
  for (const graph::Graph& graph : r.differentiated()) {
    const Arrays results = interpret(graph, 2, given);
    expect_near(results.at("outputs"), golden("self_attention_2d/forward").at("outputs"), 1e-6, "outputs");
    for (const auto& [name, theirs] : golden("self_attention_2d/backward"))
      expect_near(results.at(name == "grad_input" ? "x" : name), theirs, 1e-5, name);
  }
}

TEST(SentenceAttention, GivesEveryStepOfTheWorkedExample) {
  using Model = models::SentenceAttention;
  using Words = Tensor<Model::T, Model::E>;
  Recording r;
  Model model;
  const Words x(r.builder.input("x", Words::shape.dims()));
  bind(model, "");
  const Model::Steps steps = model.steps(x);
  r.value("q", node_of(steps.q));
  r.value("k", node_of(steps.k));
  r.value("v", node_of(steps.v));
  r.value("scores", node_of(steps.scores));
  r.value("weights", node_of(steps.weights));
  r.value("outputs", node_of(steps.outputs));
  codegen::verify(r.graph);

  const Arrays example = golden("sentence_attention/example");
  const Arrays results = interpret(r.graph, 1, example);
  ASSERT_EQ(results.size(), 6U);
  for (const auto& [name, mine] : results) expect_near(mine, example.at(name), 1e-6, name);
}

TEST(ScalarGraph, GivesTheValueAndBothGradientsOfTheWorkedExample) {
  Recording r;
  models::ScalarGraph model;
  bind(model, "");
  const Tensor<> e = model();
  r.value("e", node_of(e));
  r.loss(node_of(e));

  const Arrays example = golden("scalar_graph/example");
  for (const graph::Graph& graph : r.differentiated()) {
    const Arrays results = interpret(graph, 1, example);
    expect_near(results.at("e"), example.at("e"), 1e-6, "e");
    expect_near(results.at("a"), example.at("grad_a"), 1e-6, "grad_a");
    expect_near(results.at("b"), example.at("grad_b"), 1e-6, "grad_b");
  }
}

TEST(Sinusoidal, TablesArePyTorchs) {
  Recording r;
  r.value("50x8", node_of(sinusoidal<50_c, 8_c>()));
  r.value("17x5", node_of(sinusoidal<17_c, 5_c>()));
  const Arrays tables = golden("sinusoidal/table"), results = interpret(r.graph, 1, {});
  ASSERT_EQ(results.size(), tables.size());
  for (const auto& [name, theirs] : tables) expect_near(results.at(name), theirs, 1e-7, name);
}

}  // namespace
}  // namespace tessera::test
