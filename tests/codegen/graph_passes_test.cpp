// print, decompose, simplify, subgraph and optimizer on small graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "codegen/error.hpp"
#include "codegen/passes/canonical_order.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/optimizer.hpp"
#include "codegen/passes/print.hpp"
#include "codegen/passes/recompute.hpp"
#include "codegen/passes/row_sums.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/subgraph.hpp"
#include "codegen/passes/verify.hpp"
#include "tests/codegen/support/sketch.hpp"

namespace tessera::test {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::Op;

void expect_same_values(const Sketch& s, const Graph& other, double tolerance) {
  ASSERT_NO_THROW(codegen::verify(other)) << codegen::print(other);
  const Arrays mine = interpret(s.graph, s.batch, s.given), theirs = interpret(other, s.batch, s.given);
  ASSERT_EQ(mine.size(), theirs.size());
  for (const auto& [name, array] : mine) {
    ASSERT_EQ(array.shape, theirs.at(name).shape) << name;
    for (std::size_t i = 0; i < array.numbers.size(); ++i)
      ASSERT_NEAR(array.numbers[i], theirs.at(name).numbers[i], tolerance) << name << "\n" << codegen::print(other);
  }
}

/// The simplified graph as text, without its first line and its outputs; it must have kept its values.
std::string simplified(const Sketch& s) {
  const Graph simple = codegen::simplify(s.graph);
  expect_same_values(s, simple, 1e-13);
  const std::string text = codegen::print(simple);
  const std::size_t first = text.find('\n') + 1;
  return text.substr(first, text.find("value \"") - first);
}

TEST(Print, ShowsEveryNodeWithItsAttributesRegionsIndentedAndOutputsAtTheEnd) {
  Sketch s;
  s.graph.name = "tiny";
  const Dim N1 = Dim::axis("N", 4) + Dim::constant(1);
  const NodeId x = s.input("images", {s.B, N1});
  const NodeId labels = s.labels("labels", {s.B}, 7);
  s.b.begin_region("blocks", 3);
  s.b.path = "blocks.{}.fc";
  const NodeId carry = s.b.carry(x);
  const NodeId weight = s.parameter("blocks.{}.fc.weight", {N1, N1});
  const NodeId y = s.b.einsum({carry, weight}, {{'b', 'i'}, {'j', 'i'}, {'b', 'j'}});
  s.b.path = "";
  const NodeId out = s.b.end_region({s.b.add(y, s.b.constant(0.5))})[0];
  graph::Rearrangement r{{s.B, N1}, {{0}, {1}}, {{1, 0}, {}}};
  s.value("outputs", s.b.rearrange(out, r, {N1 * s.B, Dim::constant(1)}));
  s.loss(s.b.cross_entropy(s.b.slice(out, 1, 2, s.K), labels));
  EXPECT_EQ(codegen::print(s.graph), R"(graph "tiny"
%0 = input "images" : [B, N+1=5]
%1 = input "labels" integers : [B]
region 1 "blocks" x3: carries %2, yields %7
  %2 = carry %0 : [B, N+1=5]   # blocks.{}.fc
  %3 = parameter "blocks.{}.fc.weight" : [N+1=5, N+1=5]   # blocks.{}.fc
  %4 = einsum "bi,ji->bj" %2, %3 : [B, N+1=5]   # blocks.{}.fc
  %5 = constant 0.5 : []
  %6 = broadcast axes=[] %5 : [B, N+1=5]
  %7 = add %4, %6 : [B, N+1=5]
%8 = carry_out %2 : [B, N+1=5]
%9 = rearrange "a b -> (b a) 1" a:B b:N+1=5 %8 : [B*N+B, 1]
%10 = slice axis=1 offset=2 %8 : [B, K=2]
%11 = cross_entropy %10, %1 : []
value "outputs" = %9
loss "loss" = %11
)");
}

TEST(Decompose, KeepsTheValuesOfEveryCompositeAndLeavesPrimitivesOnly) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.B, s.I, s.J});
  const NodeId w = s.parameter("w", {s.I, s.J}), bias = s.parameter("bias", {s.I, s.J});
  s.value("softmax", s.b.softmax(x, 1));
  s.value("norm", s.b.layer_norm(x, w, bias, {1, 2}, 1e-5));
  const NodeId logits = s.parameter("logits", {s.B, s.J});
  s.value("loss", s.b.cross_entropy(logits, s.labels("labels", {s.B}, 7)));
  const Graph primitive = codegen::decompose(s.graph);
  expect_same_values(s, primitive, 1e-14);
  EXPECT_TRUE(std::none_of(primitive.nodes.begin(), primitive.nodes.end(), [](const graph::Node& n) {
    return n.op == Op::softmax || n.op == Op::layer_norm || n.op == Op::cross_entropy;
  }));
}

TEST(Decompose, KeepsSoftmaxAndCrossEntropyFiniteForLargeLogits) {
  Sketch s;
  const NodeId logits = s.parameter("logits", {s.B, s.K});
  s.given["logits"].numbers = {1e4, -1e4, 2000, 1999, -3000, -3000};
  const NodeId labels = s.labels("labels", {s.B}, 2);
  s.given["labels"].numbers = {0, 1, 0};
  s.value("softmax", s.b.softmax(logits, 1));
  s.value("loss", s.b.cross_entropy(logits, labels));
  const Arrays results = interpret(codegen::decompose(s.graph), s.batch, s.given);
  EXPECT_DOUBLE_EQ(results.at("softmax").numbers[0], 1);
  EXPECT_DOUBLE_EQ(results.at("softmax").numbers[4], 0.5);
  EXPECT_NEAR(results.at("loss").numbers[0], (0 + std::log1p(std::exp(1.0)) + std::log(2.0)) / 3, 1e-12);
}

TEST(Simplify, RemovesWhatNoOutputNeeds) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I});
  s.b.unary(Op::exp, x);
  s.value("y", s.b.unary(Op::tanh, x));
  EXPECT_EQ(simplified(s), "%0 = parameter \"x\" : [I=5]\n%1 = tanh %0 : [I=5]\n");
}

TEST(Simplify, RemovesCarriesAndRegionsThatNoOutputNeeds) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I}), y = s.parameter("y", {s.I});
  s.b.begin_region("unused", 2);
  const NodeId gone = s.b.carry(x);
  s.b.end_region({s.b.unary(Op::exp, gone)});
  s.b.begin_region("blocks", 2);
  const NodeId p = s.b.carry(x), q = s.b.carry(y);
  s.value("y", s.b.end_region({s.b.unary(Op::tanh, p), s.b.add(q, p)})[0]);
  EXPECT_EQ(simplified(s),
            "%0 = parameter \"x\" : [I=5]\n"
            "region 1 \"blocks\" x2: carries %1, yields %2\n"
            "  %1 = carry %0 : [I=5]\n"
            "  %2 = tanh %1 : [I=5]\n"
            "%3 = carry_out %1 : [I=5]\n");
}

TEST(Simplify, ComputesWhatIsEqualOnce) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I}), y = s.parameter("y", {s.I});
  const NodeId first = s.b.unary(Op::exp, s.b.add(x, y));
  s.value("y", s.b.multiply(first, s.b.unary(Op::exp, s.b.add(y, x))));
  EXPECT_EQ(simplified(s),
            "%0 = parameter \"x\" : [I=5]\n%1 = parameter \"y\" : [I=5]\n%2 = add %0, %1 : [I=5]\n"
            "%3 = exp %2 : [I=5]\n%4 = multiply %3, %3 : [I=5]\n");
}

TEST(Simplify, ReadsFromTheMirroredRegionWhatItComputedAlready) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I});
  s.b.begin_region("blocks", 2);
  const NodeId p = s.b.carry(x);
  const NodeId y = s.b.unary(Op::tanh, p);
  const NodeId forward = s.b.end_region({y})[0];
  s.b.begin_region("blocks", 2, true, 1);
  const NodeId q = s.b.carry(forward);
  const NodeId again = s.b.unary(Op::tanh, p);
  s.value("y", s.b.end_region({s.b.multiply(q, again)})[0]);
  EXPECT_EQ(simplified(s),
            "%0 = parameter \"x\" : [I=5]\n"
            "region 1 \"blocks\" x2: carries %1, yields %2\n"
            "  %1 = carry %0 : [I=5]\n"
            "  %2 = tanh %1 : [I=5]\n"
            "%3 = carry_out %1 : [I=5]\n"
            "region 2 \"blocks\" x2 reversed mirrors 1: carries %4, yields %5\n"
            "  %4 = carry %3 : [I=5]\n"
            "  %5 = multiply %4, %2 : [I=5]\n"
            "%6 = carry_out %4 : [I=5]\n");
}

TEST(Simplify, KeepsAYieldInItsRegionWhenItsValueIsKnownOutside) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I}), y = s.parameter("y", {s.I});
  s.b.begin_region("blocks", 2);
  s.b.carry(x);
  s.value("y", s.b.end_region({s.b.add(y, s.b.constant(0))})[0]);
  EXPECT_NE(simplified(s).find("copy %1 : [I=5]"), std::string::npos);
}

TEST(Simplify, FoldsConstantsAndDropsNeutralOperands) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I});
  const NodeId two = s.b.constant(2);
  const NodeId eight = s.b.multiply(two, s.b.constant(4));
  const NodeId one = s.b.constant(1);
  const NodeId none = s.b.subtract(one, s.b.unary(Op::sqrt, one));
  const NodeId same = s.b.add(none, s.b.divide(s.b.multiply(one, x), one));
  const NodeId twice = s.b.multiply(s.b.multiply(eight, same), s.b.constant(0.25));
  s.value("y", s.b.unary(Op::negate, s.b.subtract(s.b.constant(0), s.b.subtract(twice, none))));
  EXPECT_EQ(simplified(s),
            "%0 = parameter \"x\" : [I=5]\n%1 = constant 2 : []\n%2 = broadcast axes=[] %1 : [I=5]\n"
            "%3 = multiply %0, %2 : [I=5]\n");
}

TEST(Simplify, TurnsAdditionOfTheNegativeIntoSubtraction) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I}), y = s.parameter("y", {s.I});
  s.value("y", s.b.add(s.b.unary(Op::negate, x), y));
  EXPECT_EQ(simplified(s),
            "%0 = parameter \"x\" : [I=5]\n%1 = parameter \"y\" : [I=5]\n%2 = subtract %1, %0 : [I=5]\n");
}

TEST(Simplify, ComputesBeforeItBroadcastsAndBroadcastsOnce) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I});
  const NodeId twice = s.b.broadcast(s.b.broadcast(x, {s.I, s.J}, {0}), {s.B, s.I, s.J}, {1, 2});
  const NodeId half = s.b.divide(twice, s.b.extent(s.B));
  s.value("y", s.b.unary(Op::exp, half));
  EXPECT_EQ(simplified(s),
            "%0 = parameter \"x\" : [I=5]\n%1 = extent B : []\n%2 = broadcast axes=[] %1 : [I=5]\n"
            "%3 = divide %0, %2 : [I=5]\n%4 = exp %3 : [I=5]\n%5 = broadcast axes=[1] %4 : [B, I=5, J=7]\n");
}

TEST(Simplify, MovesElementwiseOpsIntoTheConcatThatNobodyElseReads) {
  Sketch s;
  const NodeId a = s.parameter("a", {s.B, s.I}), c = s.parameter("c", {s.B, s.K});
  const NodeId positions = s.parameter("p", {s.I + s.K});
  const NodeId whole = s.b.concat({a, c}, 1, s.I + s.K);
  s.value("y", s.b.add(whole, s.b.broadcast(positions, {s.B, s.I + s.K}, {1})));
  const std::string text = simplified(s);
  EXPECT_EQ(text,
            "%0 = parameter \"a\" : [B, I=5]\n%1 = parameter \"c\" : [B, K=2]\n%2 = parameter \"p\" : [I+K=7]\n"
            "%3 = slice axis=0 offset=0 %2 : [I=5]\n%4 = broadcast axes=[1] %3 : [B, I=5]\n%5 = add %0, %4 : [B, I=5]\n"
            "%6 = slice axis=0 offset=5 %2 : [K=2]\n%7 = broadcast axes=[1] %6 : [B, K=2]\n%8 = add %1, %7 : [B, K=2]\n"
            "%9 = concat axis=1 %5, %8 : [B, I+K=7]\n");
}

TEST(Simplify, MovesAnOpOfTwoEqualConcatsPartByPart) {
  Sketch s;
  const NodeId a = s.parameter("a", {s.I}), c = s.parameter("c", {s.K}), d = s.parameter("d", {s.I}),
               e = s.parameter("e", {s.K});
  const NodeId first = s.b.concat({a, c}, 0, s.I + s.K), second = s.b.concat({d, e}, 0, s.I + s.K);
  s.value("y", s.b.multiply(first, second));
  const std::string text = simplified(s);
  EXPECT_EQ(text.find("slice"), std::string::npos) << text;
  EXPECT_NE(text.find("%4 = multiply %0, %2 : [I=5]"), std::string::npos) << text;
}

TEST(Simplify, LeavesAConcatAloneThatOthersRead) {
  Sketch s;
  const NodeId whole = s.b.concat({s.parameter("a", {s.I}), s.parameter("c", {s.K})}, 0, s.I + s.K);
  s.value("y", s.b.unary(Op::exp, whole));
  s.value("z", whole);
  EXPECT_NE(simplified(s).find("exp %2 : [I+K=7]"), std::string::npos);
}

TEST(Simplify, SlicesThePartThatASliceOfAConcatLiesIn) {
  Sketch s;
  const NodeId a = s.parameter("a", {s.I}), c = s.parameter("c", {s.K}), d = s.parameter("d", {s.J});
  const NodeId whole = s.b.concat({a, c, d}, 0, s.I + s.K + s.J);
  s.value("part", s.b.slice(whole, 0, 5, s.K));
  s.value("inside", s.b.slice(s.b.slice(whole, 0, 1, Dim::constant(13)), 0, 7, Dim::constant(3)));
  s.value("two", s.b.slice(whole, 0, 0, s.I + s.K));
  s.value("across", s.b.slice(whole, 0, 3, Dim::constant(3)));
  const Graph simple = codegen::simplify(s.graph);
  expect_same_values(s, simple, 0);
  EXPECT_EQ(simple[simple.outputs[0].node].name, "c");
  EXPECT_EQ(simple[simple[simple.outputs[1].node].operands[0]].name, "d");
  EXPECT_EQ(simple[simple.outputs[1].node].offset, 1);
  EXPECT_EQ(simple[simple.outputs[2].node].op, Op::concat);
  EXPECT_EQ(simple[simple[simple.outputs[3].node].operands[0]].op, Op::concat);
}

TEST(Simplify, TurnsNeighbouringSlicesBackIntoTheirSource) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.B, s.J});
  const NodeId left = s.b.slice(x, 1, 0, Dim::constant(3)), right = s.b.slice(x, 1, 3, Dim::constant(4));
  s.value("y", s.b.unary(Op::exp, s.b.concat({left, right}, 1, s.J)));
  EXPECT_EQ(simplified(s), "%0 = parameter \"x\" : [B, J=7]\n%1 = exp %0 : [B, J=7]\n");
}

// rename of the DSL is recorded so: the same numbers, a dim of another name. Random models found it.
TEST(Simplify, GivesTheGradientOfAWholeAxisUnderAnotherNameItsOwnNameBack) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I, s.J});
  s.weighted_loss(s.b.unary(Op::tanh, s.b.slice(x, 1, 0, Dim::constant(s.J.value()))));
  const Graph joint = codegen::simplify(codegen::decompose(codegen::differentiate(s.graph, false)));
  EXPECT_NO_THROW(codegen::verify(joint));
  EXPECT_EQ(joint[joint.outputs.back().node].shape, (std::vector<Dim>{s.I, s.J}));
}

TEST(Simplify, FlattensConcatsAndDropsViewsThatChangeNothing) {
  Sketch s;
  const NodeId a = s.parameter("a", {s.I}), c = s.parameter("c", {s.K});
  const NodeId inner = s.b.concat({a, c}, 0, s.I + s.K);
  const NodeId same = s.b.slice(s.b.einsum({c}, {{'k'}, {'k'}}), 0, 0, s.K);
  const NodeId again = s.b.broadcast(s.b.rearrange(same, {{s.K}, {{0}}, {{0}}}, {s.K}), {s.K}, {0});
  s.value("y", s.b.concat({inner, again}, 0, s.I + s.K + s.K));
  EXPECT_EQ(simplified(s),
            "%0 = parameter \"a\" : [I=5]\n%1 = parameter \"c\" : [K=2]\n%2 = concat axis=0 %0, %1, %1 : [I+2*K=9]\n");
}

/// tanh(x) * exp(x) through two layers, its operands and its constants recorded in one order or the other.
void record_either_way(Sketch& s, bool left_first) {
  const NodeId x = s.parameter("x", {s.I});
  auto both = [&](NodeId value) {
    NodeId left = graph::none, right = graph::none;
    for (bool now_left : {left_first, !left_first}) {
      if (now_left)
        left = s.b.multiply(s.b.unary(Op::tanh, value), s.b.constant(0.5));
      else
        right = s.b.unary(Op::exp, value);
    }
    return s.b.multiply(left, right);
  };
  const NodeId start = both(x);
  s.b.begin_region("blocks", 2);
  const NodeId carry = s.b.carry(start);
  s.value("y", both(s.b.end_region({both(carry)})[0]));
  s.b.unary(Op::relu, x);
}

TEST(CanonicalOrder, IsTheSameForEveryOrderOfRecordingAndKeepsTheValues) {
  Sketch first, second;
  record_either_way(first, true);
  record_either_way(second, false);
  ASSERT_NE(codegen::print(first.graph), codegen::print(second.graph));
  const Graph ordered = codegen::canonical_order(first.graph);
  EXPECT_EQ(codegen::print(ordered), codegen::print(codegen::canonical_order(second.graph)));
  EXPECT_EQ(ordered.nodes.size(), first.graph.nodes.size());
  expect_same_values(first, ordered, 0);
}

/// How many different values of a forward region its mirror reads, parameters apart.
std::size_t values_kept(const Graph& graph) {
  std::set<NodeId> kept;
  for (const graph::Node& n : graph.nodes)
    for (NodeId o : n.operands)
      if (graph[o].op != Op::parameter && graph[o].region != 0 &&
          graph.regions[static_cast<std::size_t>(n.region)].mirror == graph[o].region)
        kept.insert(o);
  return kept.size();
}

TEST(Recompute, MakesGeluAgainInTheBackwardPassAndKeepsWhatItsGradientReads) {
  // x + gelu(x W) V: the backward pass reads x, x W and, for V's gradient, gelu(x W).
  Sketch s;
  const NodeId x = s.input("images", {s.B, s.I});
  s.b.begin_region("blocks", 3);
  const NodeId carry = s.b.carry(x);
  const NodeId in = s.parameter("blocks.{}.in", {s.J, s.I}), out = s.parameter("blocks.{}.out", {s.I, s.J});
  const NodeId hidden = s.b.unary(Op::gelu, s.b.einsum({carry, in}, {{'b', 'i'}, {'j', 'i'}, {'b', 'j'}}));
  const NodeId y = s.b.einsum({hidden, out}, {{'b', 'j'}, {'i', 'j'}, {'b', 'i'}});
  s.weighted_loss(s.b.end_region({s.b.add(carry, y)})[0]);
  s.graph = codegen::simplify(codegen::decompose(codegen::differentiate(s.graph, true)));
  const Graph again = codegen::recompute(s.graph);
  EXPECT_EQ(values_kept(s.graph), 3u) << codegen::print(s.graph);
  EXPECT_EQ(values_kept(again), 2u) << codegen::print(again);
  expect_same_values(s, again, 0);
}

/// x + softmax(q k) v in three blocks, of 5 tokens and heads as wide as they are: the gradients of everything.
void record_attention(Sketch& s, const Dim& width, bool drops) {
  const NodeId x = s.input("images", {s.B, s.I, width});
  s.b.begin_region("blocks", 3);
  const NodeId carry = s.b.carry(x);
  const auto map = [&](const std::string& name) {
    const NodeId weight = s.parameter("blocks.{}." + name, {width, width}, -1, 1);
    return s.b.einsum({carry, weight}, {{'b', 'i', 'j'}, {'k', 'j'}, {'b', 'i', 'k'}});
  };
  const NodeId query = map("query"), key = map("key"), value = map("value");
  const NodeId scores = s.b.einsum({query, key}, {{'b', 'i', 'k'}, {'b', 'j', 'k'}, {'b', 'i', 'j'}});
  const NodeId shares = s.b.softmax(s.b.multiply(scores, s.b.broadcast(s.b.constant(0.5), s.b.shape(scores), {})), 2);
  const NodeId left = drops ? s.b.dropout(shares, 0.25, {0, 1, 2}) : shares;
  const NodeId mixed = s.b.einsum({left, value}, {{'b', 'i', 'j'}, {'b', 'j', 'k'}, {'b', 'i', 'k'}});
  s.weighted_loss(s.b.end_region({s.b.add(carry, mixed)})[0]);
  s.graph = codegen::simplify(codegen::decompose(codegen::differentiate(s.graph, true)));
}

TEST(Recompute, MakesAttentionsProbabilitiesAgainFromTwoNumbersOfEachRow) {
  Sketch s;
  record_attention(s, s.K, false);
  // The block's input, q, k, v, what scores are scaled by, and the probabilities.
  EXPECT_EQ(values_kept(s.graph), 6u) << codegen::print(s.graph);
  const Graph again = codegen::recompute(s.graph, 20);
  EXPECT_EQ(values_kept(again), 7u) << codegen::print(again);  // in their place the largest scores and the sums
  expect_same_values(s, again, 0);
}

TEST(Recompute, KeepsProbabilitiesThatAreNotLargerThanWhatTheyAreMadeOf) {
  Sketch s;
  record_attention(s, s.K, false);
  EXPECT_EQ(codegen::print(codegen::recompute(s.graph)), codegen::print(s.graph));      // 25 scores: not large
  EXPECT_EQ(codegen::print(codegen::recompute(s.graph, 25)), codegen::print(s.graph));  // not larger than that

  Sketch wide;
  record_attention(wide, wide.J, false);  // 25 scores of 35 queries and 35 keys
  EXPECT_EQ(codegen::print(codegen::recompute(wide.graph, 0)), codegen::print(wide.graph));
}

TEST(Recompute, MakesProbabilitiesAgainBesideWhatIsLeftOfThemAfterDropout) {
  Sketch s;
  record_attention(s, s.K, true);
  s.given["random"] = {{4}, {1, 2, 3, 4}};
  const Graph again = codegen::recompute(s.graph, 20);
  EXPECT_EQ(values_kept(again), values_kept(s.graph) + 1) << codegen::print(again);
  expect_same_values(s, again, 0);
}

/// Sums over a dim of scores: in a forward pass those of exponentials.
std::size_t sums_of_scores(const Graph& g) {
  return static_cast<std::size_t>(std::count_if(g.nodes.begin(), g.nodes.end(), [&](const graph::Node& n) {
    if (n.op != Op::reduce_sum) return false;
    const std::vector<Dim>& shape = g[n.operands[0]].shape;
    return shape.size() == 3 && shape[1] == shape[2];
  }));
}

TEST(RowSums, OfASoftmaxGradientAreTakenOfWhatItsProbabilitiesWeighed) {
  Sketch s;
  record_attention(s, s.K, false);
  EXPECT_EQ(sums_of_scores(s.graph), 2u) << codegen::print(s.graph);
  const Graph of_outputs = codegen::take_row_sums_of_outputs(s.graph, 25);
  EXPECT_EQ(sums_of_scores(of_outputs), 1u) << codegen::print(of_outputs);
  expect_same_values(s, of_outputs, 1e-12);
  expect_same_values(s, codegen::recompute(of_outputs, 20), 1e-12);
}

TEST(RowSums, StayWhereScoresAreFewOrNoMoreThanWhatTheyWeigh) {
  Sketch s;
  record_attention(s, s.K, false);
  EXPECT_EQ(codegen::print(codegen::take_row_sums_of_outputs(s.graph)), codegen::print(s.graph));
  EXPECT_EQ(codegen::print(codegen::take_row_sums_of_outputs(s.graph, 26)), codegen::print(s.graph));
  Sketch wide;
  record_attention(wide, wide.J, false);  // 25 scores weigh 35 numbers
  EXPECT_EQ(codegen::print(codegen::take_row_sums_of_outputs(wide.graph, 0)), codegen::print(wide.graph));
}

TEST(RowSums, StayWhereProbabilitiesDropOut) {
  Sketch s;
  record_attention(s, s.K, true);
  EXPECT_EQ(codegen::print(codegen::take_row_sums_of_outputs(s.graph, 0)), codegen::print(s.graph));
}

TEST(RowSums, OfProbabilitiesThatAreWeighedAlongTheirColumnsAreThoseOfTheValuesGradient) {
  Sketch s;
  const NodeId x = s.input("images", {s.B, s.I, s.K});
  const NodeId weight = s.parameter("weight", {s.I, s.K}, -1, 1);
  const NodeId scores = s.b.einsum({x, weight}, {{'b', 'i', 'k'}, {'j', 'k'}, {'b', 'i', 'j'}});
  const NodeId shares = s.b.softmax(scores, 2);
  // It sums over the queries, and the gradient of x, which sums over the keys, is the product that they weigh.
  s.weighted_loss(s.b.einsum({shares, x}, {{'b', 'i', 'j'}, {'b', 'i', 'k'}, {'b', 'j', 'k'}}));
  s.graph = codegen::simplify(codegen::decompose(codegen::differentiate(s.graph, true)));
  EXPECT_EQ(sums_of_scores(s.graph), 2u) << codegen::print(s.graph);
  const Graph of_outputs = codegen::take_row_sums_of_outputs(s.graph, 25);
  EXPECT_EQ(sums_of_scores(of_outputs), 1u) << codegen::print(of_outputs);
  expect_same_values(s, of_outputs, 1e-12);
}

TEST(Recompute, LeavesAloneWhatItsSourcesAreNotKeptFor) {
  // tanh's gradient reads tanh's value, not what it was made of.
  Sketch s;
  const NodeId x = s.input("images", {s.B, s.I});
  s.b.begin_region("blocks", 2);
  const NodeId carry = s.b.carry(x);
  const NodeId weight = s.parameter("blocks.{}.weight", {s.I, s.I});
  s.weighted_loss(
      s.b.end_region({s.b.unary(Op::tanh, s.b.einsum({carry, weight}, {{'b', 'i'}, {'j', 'i'}, {'b', 'j'}}))})[0]);
  const Graph joint = codegen::simplify(codegen::decompose(codegen::differentiate(s.graph, true)));
  EXPECT_EQ(codegen::print(codegen::recompute(joint)), codegen::print(joint));
}

TEST(Recompute, KeepsWhatHasBeenDroppedFrom) {
  // All that dropout(gelu(x W)) is made of is kept, its factors too.
  Sketch s;
  const NodeId x = s.input("images", {s.B, s.I});
  s.b.begin_region("blocks", 2);
  const NodeId carry = s.b.carry(x);
  const NodeId in = s.parameter("blocks.{}.in", {s.J, s.I}), out = s.parameter("blocks.{}.out", {s.I, s.J});
  const NodeId hidden = s.b.unary(Op::gelu, s.b.einsum({carry, in}, {{'b', 'i'}, {'j', 'i'}, {'b', 'j'}}));
  const NodeId left = s.b.dropout(hidden, 0.25, {0, 1});
  s.weighted_loss(s.b.end_region({s.b.einsum({left, out}, {{'b', 'j'}, {'i', 'j'}, {'b', 'i'}})})[0]);
  const Graph joint = codegen::simplify(codegen::decompose(codegen::differentiate(s.graph, true)));
  EXPECT_EQ(codegen::print(codegen::recompute(joint)), codegen::print(joint));
}

TEST(Subgraph, KeepsTheNamedOutputsAndWhatTheyNeed) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I}), y = s.parameter("y", {s.I});
  s.value("a", s.b.unary(Op::exp, x));
  s.value("b", s.b.unary(Op::tanh, y));
  const Graph part = codegen::subgraph(s.graph, {"b"});
  EXPECT_EQ(codegen::print(part), "graph \"\"\n%0 = parameter \"y\" : [I=5]\n%1 = tanh %0 : [I=5]\nvalue \"b\" = %1\n");
}

TEST(Subgraph, RefusesAnOutputThatTheModelDoesNotHave) {
  Sketch s;
  s.graph.name = "tiny";
  s.value("outputs", s.parameter("x", {s.I}));
  try {
    codegen::subgraph(s.graph, {"attention"});
    FAIL() << "nothing was refused";
  } catch (const codegen::Error& error) {
    EXPECT_STREQ(error.what(), "the model tiny has no output attention: it has outputs");
  }
}

TEST(Optimizer, IsOneStepOfAdam) {
  graph::Recipe recipe;
  recipe.learning_rate = 0.01;
  const Graph update = codegen::optimizer(recipe, 1, "tiny");
  codegen::verify(update);
  const double g = 0.3, m = 0.2, v = 0.05, p = 1.5, step = 7;
  const Arrays results = interpret(update, 1,
                                   {{"parameters", {{1}, {p}}},
                                    {"gradients", {{1}, {g}}},
                                    {"moment1", {{1}, {m}}},
                                    {"moment2", {{1}, {v}}},
                                    {"learning_rate_corrected", {{}, {0.01 / (1 - std::pow(0.9, step))}}},
                                    {"second_correction", {{}, {1 / std::sqrt(1 - std::pow(0.999, step))}}}});
  const double m1 = 0.9 * m + 0.1 * g, v1 = 0.999 * v + 0.001 * g * g;
  const double m_hat = m1 / (1 - std::pow(0.9, step)), v_hat = v1 / (1 - std::pow(0.999, step));
  EXPECT_NEAR(results.at("moment1").numbers[0], m1, 1e-15);
  EXPECT_NEAR(results.at("moment2").numbers[0], v1, 1e-15);
  EXPECT_NEAR(results.at("parameters").numbers[0], p - 0.01 * m_hat / (std::sqrt(v_hat) + 1e-8), 1e-15);
}

}  // namespace
}  // namespace tessera::test
