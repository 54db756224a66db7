// The verifier refuses each way in which a graph can be broken, with its sentence.
#include <gtest/gtest.h>

#include <string>

#include "codegen/error.hpp"
#include "codegen/passes/verify.hpp"
#include "tests/codegen/support/sketch.hpp"

namespace tessera::test {
namespace {

using graph::Node;
using graph::NodeId;
using graph::Op;

std::string refusal(const graph::Graph& graph) {
  try {
    codegen::verify(graph);
  } catch (const codegen::Error& error) {
    return error.what();
  }
  return "it was accepted";
}

/// x [I, J] and one op on it.
struct Broken : Sketch {
  NodeId x = parameter("x", {I, J});
  graph::Node& last() { return graph.nodes.back(); }
};

TEST(Verify, AcceptsAWholeModelWithARegion) {
  Broken s;
  s.b.begin_region("blocks", 2);
  const NodeId carry = s.b.carry(s.x);
  s.weighted_loss(s.b.end_region({s.b.unary(Op::gelu, carry)})[0]);
  EXPECT_NO_THROW(codegen::verify(s.graph));
}

TEST(Verify, RefusesAnOperandThatDoesNotExist) {
  Broken s;
  s.b.path = "blocks.{}.mlp.1";
  s.b.unary(Op::gelu, s.x);
  s.last().operands = {7};
  EXPECT_EQ(refusal(s.graph), "node %1 (gelu of blocks.{}.mlp.1) reads %7, which does not exist");
}

TEST(Verify, RefusesAnOperandThatDoesNotStandBefore) {
  Broken s;
  s.b.unary(Op::gelu, s.x);
  s.last().operands = {1};
  EXPECT_EQ(refusal(s.graph), "node %1 (gelu) reads %1, which does not stand before it");
}

TEST(Verify, RefusesAWrongNumberOfOperands) {
  Broken s;
  s.b.add(s.x, s.x);
  s.last().operands = {s.x};
  EXPECT_EQ(refusal(s.graph), "node %1 (add) has 1 operands");
}

TEST(Verify, RefusesAnElementwiseOpOfTwoShapes) {
  Broken s;
  s.b.add(s.x, s.parameter("y", {s.J, s.I}));
  EXPECT_EQ(refusal(s.graph), "node %2 (add) has shape [I=5, J=7], but operand %1 has [J=7, I=5]");
}

TEST(Verify, RefusesEqualSizesOfDifferentNames) {
  Broken s;
  s.b.add(s.x, s.parameter("y", {Dim::axis("I2", 5), s.J}));
  EXPECT_EQ(refusal(s.graph), "node %2 (add) has shape [I=5, J=7], but operand %1 has [I2=5, J=7]");
}

TEST(Verify, RefusesIntegersWhereRealsBelong) {
  Sketch s;
  s.b.unary(Op::gelu, s.labels("labels", {s.B}, 3));
  EXPECT_EQ(refusal(s.graph), "node %1 (gelu) takes reals as operand 0, but %0 has integers");
}

TEST(Verify, RefusesABroadcastToAnotherExtent) {
  Broken s;
  s.b.broadcast(s.x, {s.I, s.B, s.B}, {0, 1});
  EXPECT_EQ(refusal(s.graph), "node %1 (broadcast) places dim 1 of [I=5, J=7] at axis 1 of [I=5, B, B]");
}

TEST(Verify, RefusesABroadcastThatPermutes) {
  Broken s;
  s.b.broadcast(s.x, {s.J, s.I}, {1, 0});
  EXPECT_EQ(refusal(s.graph), "node %1 (broadcast) does not keep the order of its operand's axes");
}

TEST(Verify, RefusesALetterBoundToTwoDims) {
  Broken s;
  s.b.einsum({s.x, s.x}, {{'i', 'j'}, {'j', 'k'}, {'i', 'k'}});
  EXPECT_EQ(refusal(s.graph), "node %1 (einsum) binds the letter j to J=7 and to I=5");
}

TEST(Verify, RefusesALetterOfTheResultOnly) {
  Broken s;
  s.b.einsum({s.x}, {{'i', 'j'}, {'i'}});
  s.last().letters.back() = {'k'};
  EXPECT_EQ(refusal(s.graph), "node %1 (einsum) has the letter k in its result only");
}

TEST(Verify, RefusesALetterTwiceInOneOperand) {
  Broken s;
  s.b.einsum({s.x}, {{'i', 'i'}, {'i'}});
  EXPECT_EQ(refusal(s.graph), "node %1 (einsum) has a letter twice in ii");
}

TEST(Verify, RefusesAtomsThatDoNotMultiplyToTheirDim) {
  Broken s;
  s.b.rearrange(s.x, {{s.I, s.K}, {{0}, {1}}, {{0}, {1}}}, {s.I, s.K});
  EXPECT_EQ(refusal(s.graph), "node %1 (rearrange) makes dim 1 of its left side K=2, but it is J=7");
}

TEST(Verify, RefusesAnAtomThatIsLost) {
  Broken s;
  s.b.rearrange(s.x, {{s.I, s.J}, {{0}, {1}}, {{0}}}, {s.I});
  EXPECT_EQ(refusal(s.graph), "node %1 (rearrange) does not have each atom once on its right side");
}

TEST(Verify, RefusesASliceBeyondTheEnd) {
  Broken s;
  s.b.slice(s.x, 1, 5, Dim::constant(3));
  EXPECT_EQ(refusal(s.graph), "node %1 (slice) takes 3 from 5 on, which does not lie in J=7");
}

TEST(Verify, RefusesAConcatWhosePartsDoNotFillIt) {
  Broken s;
  s.b.concat({s.x, s.x}, 0, Dim::constant(11));
  EXPECT_EQ(refusal(s.graph), "node %1 (concat) has parts of 2*I=10 in all along axis 0, where it is 11");
}

TEST(Verify, RefusesAReductionOfAnAxisThatIsNotThere) {
  Broken s;
  s.b.reduce(Op::reduce_sum, s.x, {1});
  s.last().axes = {2};
  EXPECT_EQ(refusal(s.graph), "node %1 (reduce_sum) names axis 2 of [I=5, J=7]");
}

TEST(Verify, RefusesATableWithoutAllItsNumbers) {
  Sketch s;
  s.b.table("positions", {s.I}, {1, 2, 3});
  EXPECT_EQ(refusal(s.graph), "node %0 (table) has shape [I=5] but 3 numbers");
}

TEST(Verify, RefusesALayerNormWithAWeightOfOtherDims) {
  Broken s;
  const NodeId w = s.parameter("w", {s.I});
  s.b.layer_norm(s.x, w, w, {1}, 1e-5);
  EXPECT_EQ(refusal(s.graph), "node %2 (layer_norm) normalises over [J=7], but %1 has [I=5]");
}

TEST(Verify, RefusesCrossEntropyOfAnotherNumberOfLabels) {
  Broken s;
  s.b.cross_entropy(s.x, s.labels("labels", {s.B}, 7));
  EXPECT_EQ(refusal(s.graph),
            "node %2 (cross_entropy) takes logits [B, ..., J] and labels [B, ...], not [I=5, J=7] and [B]");
}

TEST(Verify, RefusesCrossEntropyOfOneLabelForAllTokens) {
  Broken s;
  s.b.cross_entropy(s.parameter("logits", {s.I, s.J, s.J}), s.labels("labels", {s.I}, 7));
  EXPECT_EQ(refusal(s.graph),
            "node %3 (cross_entropy) takes logits [B, ..., J] and labels [B, ...], not [I=5, J=7, J=7] and [I=5]");
}

TEST(Verify, RefusesAReadFromInsideARegion) {
  Broken s;
  s.b.begin_region("blocks", 2);
  const NodeId carry = s.b.carry(s.x), inside = s.b.unary(Op::gelu, carry);
  s.b.end_region({inside});
  s.b.unary(Op::gelu, inside);
  EXPECT_EQ(refusal(s.graph), "node %4 (gelu) reads %2 of region 1 from region 0, where it is out of scope");
}

TEST(Verify, RefusesAReadFromARegionThatIsNotMirrored) {
  Broken s;
  s.b.begin_region("blocks", 2);
  const NodeId first = s.b.carry(s.x);
  s.b.end_region({first});
  s.b.begin_region("others", 2);
  const NodeId second = s.b.carry(s.x);
  s.b.end_region({s.b.add(second, first)});
  EXPECT_EQ(refusal(s.graph), "node %4 (add) reads %1 of region 1 from region 2, where it is out of scope");
  s.graph.regions[2].mirror = 1;
  EXPECT_EQ(refusal(s.graph), "it was accepted");
  s.graph.regions[2].count = 3;
  EXPECT_EQ(refusal(s.graph), "region 2 runs 3 times, but region 1, which it mirrors, 2 times");
}

// The printed graph, and with it the declaration's hash, shows what an op's row lists: two graphs that differ in
// another field would be one, and a run would go on under another model.
TEST(Verify, RefusesAFieldThatTheOpsRowDoesNotList) {
  const std::vector<std::pair<std::string, void (*)(Node&)>> fields{
      {"name", [](Node& n) { n.name = "y"; }},         {"axes", [](Node& n) { n.axes = {0}; }},
      {"offset", [](Node& n) { n.offset = 1; }},       {"value", [](Node& n) { n.value = 2; }},
      {"dim", [](Node& n) { n.dim = n.shape[0]; }},    {"letters", [](Node& n) { n.letters = {{'a'}}; }},
      {"data", [](Node& n) { n.data = {1}; }},         {"rearrangement", [](Node& n) { n.rearrangement.from = {{0}}; }},
      {"decay", [](Node& n) { n.decay = false; }},     {"init", [](Node& n) { n.init.a = 1; }},
      {"trained", [](Node& n) { n.trained = false; }}, {"stride", [](Node& n) { n.stride = 2; }},
      {"stride", [](Node& n) { n.dilation = 2; }},
  };
  for (const auto& [field, set] : fields) {
    Broken s;
    set(s.graph[s.b.unary(Op::relu, s.x)]);
    EXPECT_EQ(refusal(s.graph),
              "node %1 (relu) sets " + field + ", which its row in codegen/passes/ops.hpp does not list");
  }
}

TEST(Verify, RefusesARegionThatIsNotOneRun) {
  Broken s;
  s.b.begin_region("blocks", 2);
  const NodeId carry = s.b.carry(s.x);
  s.b.end_region({carry});
  s.b.region = 1;
  s.b.unary(Op::gelu, s.x);
  EXPECT_EQ(refusal(s.graph), "node %3 is in region 1, whose nodes are not one contiguous run");
}

TEST(Verify, RefusesAYieldOfAnotherShape) {
  Broken s;
  s.b.begin_region("blocks", 2);
  const NodeId carry = s.b.carry(s.x);
  s.b.end_region({s.b.reduce(Op::reduce_sum, carry, {0})});
  EXPECT_EQ(refusal(s.graph), "region 1 (\"blocks\") carries [I=5, J=7], but a layer yields [J=7]");
}

TEST(Verify, RefusesAYieldFromOutside) {
  Broken s;
  s.b.begin_region("blocks", 2);
  s.b.carry(s.x);
  s.b.end_region({s.x});
  EXPECT_EQ(refusal(s.graph), "region 1 carries %0, which is not a node inside it");
}

TEST(Verify, RefusesACarryWithoutAYield) {
  Broken s;
  s.b.begin_region("blocks", 2);
  s.b.carry(s.x);
  s.graph.regions[1].yields.clear();
  EXPECT_EQ(refusal(s.graph), "region 1 has 1 carries and 0 yields");
}

TEST(Verify, RefusesTwoParametersOfOneName) {
  Broken s;
  s.parameter("x", {s.I});
  EXPECT_EQ(refusal(s.graph), "two parameters or inputs are called x");
}

TEST(Verify, RefusesAnOutputThatDoesNotExist) {
  Broken s;
  s.value("outputs", 9);
  EXPECT_EQ(refusal(s.graph), "the output outputs is %9, which does not exist");
}

TEST(Verify, RefusesALossOfMoreThanOneNumber) {
  Broken s;
  s.loss(s.x);
  EXPECT_EQ(refusal(s.graph), "the loss must be one number, not [I=5, J=7]");
}

TEST(Verify, RefusesAGradientOfAnotherShape) {
  Broken s;
  const NodeId sum = s.b.reduce(Op::reduce_sum, s.x, {0});
  s.graph.outputs.push_back({graph::Output::Kind::gradient, "x", sum, s.x});
  EXPECT_EQ(refusal(s.graph), "the gradient of x has shape [J=7], but it has [I=5, J=7]");
}

}  // namespace
}  // namespace tessera::test
