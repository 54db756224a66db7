// What no files are written of, and the sentence that says why.
#include <gtest/gtest.h>

#include <string>

#include "codegen/driver.hpp"
#include "codegen/error.hpp"
#include "dsl/trace.hpp"
#include "models/vit_notebook.hpp"
#include "tests/codegen/support/refusal.hpp"
#include "tests/codegen/support/sketch.hpp"
#include "tests/recipes/recipes.hpp"

namespace tessera::test {
namespace {

using codegen::GeneratorOptions;
using graph::NodeId;
using graph::Op;

TEST(Emit, RefusesAModelWithoutParametersOrWhoseOutputsDependOnTheLabels) {
  Sketch fixed;
  fixed.graph.name = "tiny";
  const NodeId images = fixed.input("images", {fixed.B, fixed.I});
  fixed.value("outputs", images);
  fixed.loss(fixed.b.reduce(graph::Op::reduce_sum, images, {0, 1}));
  EXPECT_EQ(refusal(fixed.graph), "the model tiny has no parameters: there is nothing to train");
  std::erase_if(fixed.graph.outputs, [](const graph::Output& o) { return o.kind == graph::Output::Kind::loss; });
  EXPECT_EQ(refusal(fixed.graph), "the model tiny has no parameters: there is nothing to load");

  Sketch looking;
  looking.graph.name = "tiny";
  const NodeId x = looking.input("images", {looking.B, looking.I}),
               table = looking.parameter("table", {looking.I, looking.I});
  const NodeId rows = looking.b.gather(table, looking.labels("labels", {looking.B}, 5));
  const NodeId sum = looking.b.add(x, rows);
  looking.value("outputs", sum);
  looking.loss(looking.b.reduce(graph::Op::reduce_sum, sum, {0, 1}));
  EXPECT_EQ(refusal(looking.graph), "the outputs of tiny depend on the labels, which are there for the loss only");
}

TEST(Emit, RefusesAParameterThatIsNotUsed) {
  Sketch unused;
  unused.graph.name = "tiny";
  const NodeId x = unused.input("images", {unused.B, unused.I});
  const NodeId scale = unused.parameter("scale", {unused.I});
  unused.parameter("head.bias", {unused.I});
  unused.value("outputs", x);
  const NodeId y = unused.b.multiply(x, unused.b.broadcast(scale, {unused.B, unused.I}, {1}));
  unused.loss(unused.b.reduce(Op::reduce_sum, y, {0, 1}));
  EXPECT_EQ(refusal(unused.graph),
            "no gradient reaches head.bias: what it computes is not used on the way to the loss");
}

/// What is said of a model of two layers, once something about it is changed.
template <class Change>
std::string refusal_of(const Change& change) {
  graph::Graph g = trace<models::NotebookVit<models::NotebookVitSpec{
      .channels = 1, .height = 8, .width = 8, .patch = 4, .token = 8, .heads = 2, .classes = 3, .blocks = 2}>>("tiny");
  change(g);
  GeneratorOptions options;
  options.isas = {"scalar"};
  return refusal(g, options);
}

TEST(Emit, RefusesNamesThatAnEmittedFileWouldHaveToEscape) {
  EXPECT_EQ(refusal_of([](graph::Graph&) {}), "");
  for (const std::string name : {"a-b", "1m", "../x", "", "a b", "a\"b", "caf\xc3\xa9"}) {
    const std::string said = refusal_of([&](graph::Graph& g) { g.name = name; });
    EXPECT_TRUE(said.starts_with("the name of the model, \"")) << name << ": " << said;
  }
  EXPECT_EQ(
      refusal_of([](graph::Graph& g) { g.name = "x\n\x1b"; }),
      "the name of the model, \"x\\x0a\\x1b\", is not letters, digits and underscores, a letter first, of at most 63");
  for (const char* name : {"\"", "D\n#error", "*/", "D\\", "1", "a-b"}) {
    const std::string said = refusal_of([&](graph::Graph& g) {
      for (graph::Node& n : g.nodes)
        for (Dim& d : n.shape)
          for (Polynomial* p : {&d.shown, &d.normal})
            for (Term& t : p->term)
              for (Symbol& s : t.factor)
                if (s.name == "CLASSES") s.name = name;
    });
    EXPECT_TRUE(said.starts_with("the name of an axis, \"")) << name << ": " << said;
  }
  for (const std::string key : {"x\"", "x\\", "x*/", "x\n", "x y"}) {
    const auto changed = [&](std::string graph::Node::* text) {
      return refusal_of([&](graph::Graph& g) {
        for (graph::Node& n : g.nodes)
          if (n.op == Op::parameter) n.*text = key;
      });
    };
    EXPECT_TRUE(changed(&graph::Node::path).starts_with("the key of a module, \"")) << key;
    EXPECT_TRUE(changed(&graph::Node::name).starts_with("the key of a parameter, \"")) << key;
  }
}

TEST(Emit, SizesBeyond64BitsAreOneSentence) {
  const auto with_width = [](std::int64_t size) {
    Sketch s;
    s.graph.name = "wide";
    s.I = Dim::axis("I", size);
    s.J = Dim::axis("J", size);
    const NodeId x = s.b.input("images", {s.B, s.I});
    const NodeId weight = s.b.parameter("weight", {s.J, s.I}, {}, true);
    s.value("outputs", s.b.einsum({x, weight}, {{'b', 'i'}, {'j', 'i'}, {'b', 'j'}}));
    try {
      codegen::summarize(s.graph);
    } catch (const codegen::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(with_width(1 << 20), "");
  EXPECT_EQ(with_width(3'000'000), "node %1 (parameter) has more than 2^40 numbers an image, [J=3000000, I=3000000]");
  EXPECT_EQ(with_width(std::int64_t{1} << 62),
            "node %0 (input) has more than 2^40 numbers an image, [B, I=4611686018427387904]");
}

TEST(Emit, WhatLossesOfTargetsAndOfTheCallerDoNotHaveIsSaid) {
  const auto said = [](const graph::Graph& graph, bool cuda) {
    GeneratorOptions options;
    options.isas = {"scalar"};
    options.cuda = cuda;
    options.train = !cuda;
    try {
      codegen::generate(graph, options);
    } catch (const codegen::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(
      said(trace<SquaredError>("m"), false),
      "the loss of m is of targets: a program (--train, TRAIN) trains on labels; call m_train_step from your own");
  EXPECT_EQ(
      said(trace<CallersLoss>("m"), false),
      "the loss of m is the caller's: a program (--train, TRAIN) trains on labels; call m_gradients from your own");
  EXPECT_EQ(said(trace<CallersLoss>("m"), true),
            "the loss of m is the caller's, which --cuda does not have: declare one");
  EXPECT_EQ(said(trace<OwnCrossEntropy>("m"), false), "");
  EXPECT_EQ(said(trace<SquaredError>("m"), true), "");
}

}  // namespace
}  // namespace tessera::test
