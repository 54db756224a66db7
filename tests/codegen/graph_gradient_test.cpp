// Every op's vector-Jacobian product against central differences in double precision, at odd sizes.
#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/ops.hpp"
#include "codegen/passes/print.hpp"
#include "codegen/passes/vjp.hpp"
#include "dsl/graph/op_name.hpp"
#include "dsl/unused.hpp"
#include "tests/codegen/support/gradient_check.hpp"

namespace tessera::test {
namespace {

using graph::NodeId;
using graph::Op;

struct UnaryCase {
  std::string name;
  Op op;
  double low, high;
};

void PrintTo(const UnaryCase& c, std::ostream* out) { *out << c.name; }

class UnaryGradient : public testing::TestWithParam<UnaryCase> {};

TEST_P(UnaryGradient, AgreesWithCentralDifferences) {
  Sketch s;
  s.weighted_loss(s.b.unary(GetParam().op, s.parameter("x", {s.I, s.J}, GetParam().low, GetParam().high)));
  check_gradients(s);
}

const std::vector<UnaryCase> unary_cases{
    {"negate", Op::negate, -2, 2}, {"exp", Op::exp, -2, 2},      {"log", Op::log, 0.3, 3},
    {"sqrt", Op::sqrt, 0.3, 3},    {"rsqrt", Op::rsqrt, 0.3, 3}, {"tanh", Op::tanh, -2, 2},
    {"sin", Op::sin, -4, 4},       {"cos", Op::cos, -4, 4},      {"erf", Op::erf, -2, 2},
    {"gelu", Op::gelu, -3, 3},     {"relu", Op::relu, -2, 2},    {"gelu_gradient", Op::gelu_gradient, -3, 3},
    {"copy", Op::copy, -2, 2}};
INSTANTIATE_TEST_SUITE_P(Op, UnaryGradient, testing::ValuesIn(unary_cases),
                         [](const auto& info) { return info.param.name; });

struct BinaryCase {
  std::string name;
  Op op;
};

void PrintTo(const BinaryCase& c, std::ostream* out) { *out << c.name; }

class BinaryGradient : public testing::TestWithParam<BinaryCase> {};

TEST_P(BinaryGradient, AgreesWithCentralDifferencesForBothOperands) {
  Sketch s;
  s.weighted_loss(s.b.binary(GetParam().op, s.parameter("x", {s.I, s.J}), s.parameter("y", {s.I, s.J}, 0.5, 2)));
  check_gradients(s);
}

TEST_P(BinaryGradient, AgreesWithCentralDifferencesWhereOneValueIsBothOperandsAndOneANumber) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I, s.J}, 0.5, 2);
  const NodeId y = s.b.binary(GetParam().op, s.b.unary(Op::tanh, x), x);
  s.weighted_loss(s.b.binary(GetParam().op, s.b.binary(GetParam().op, y, s.b.constant(1.5)), x));
  check_gradients(s);
}

const std::vector<BinaryCase> binary_cases{{"add", Op::add},
                                           {"subtract", Op::subtract},
                                           {"multiply", Op::multiply},
                                           {"divide", Op::divide},
                                           {"maximum", Op::maximum}};
INSTANTIATE_TEST_SUITE_P(Op, BinaryGradient, testing::ValuesIn(binary_cases),
                         [](const auto& info) { return info.param.name; });

// An op without a case would have a gradient that nothing has ever compared.
TEST(GradientCases, HoldEveryElementwiseOp) {
  std::set<Op> ops{Op::step, Op::equal,  // flat wherever they have a derivative
                   Op::select};          // Gradient.OfSelectIsThatOfTheChosenOperand
  for (const UnaryCase& c : unary_cases) ops.insert(c.op);
  for (const BinaryCase& c : binary_cases) ops.insert(c.op);
  for (const Op op : codegen::elementwise_ops)
    EXPECT_TRUE(ops.contains(op)) << "no case compares the gradient of " << graph::op_name(op);
}

// The declaration refuses parameters that no gradient reaches: it has to know of the same ops that they pass none.
TEST(GradientCases, AreFlatWhereTheDeclarationSaysSo) {
  for (const Op op : codegen::elementwise_ops) {
    Sketch s;
    std::vector<NodeId> operands;
    for (int k = 0; k < codegen::row_of(op).most; ++k)
      operands.push_back(s.parameter("x" + std::to_string(k), {s.I, s.J}));
    const NodeId y = operands.size() == 1   ? s.b.unary(op, operands[0])
                     : operands.size() == 2 ? s.b.binary(op, operands[0], operands[1])
                                            : s.b.select(operands[0], operands[1], operands[2]);
    const NodeId gradient = s.parameter("gradient", {s.I, s.J});
    const auto contributions = codegen::vjp(s.b, y, gradient, std::vector<bool>(operands.size(), true));
    for (std::size_t k = 0; k < operands.size(); ++k)
      EXPECT_EQ(contributions[k].node == graph::none, detail::is_flat(op, k))
          << "dsl/unused.hpp and vjp.cpp differ about operand " << k << " of " << graph::op_name(op);
  }
}

TEST(Gradient, OfSelectIsThatOfTheChosenOperand) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I, s.J}), y = s.parameter("y", {s.I, s.J});
  s.weighted_loss(s.b.select(x, s.b.multiply(x, y), s.b.unary(Op::exp, y)));
  check_gradients(s);
}

TEST(Gradient, OfMaximumIsSplitEvenlyWhereBothOperandsAreEqual) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I});
  const NodeId y = s.parameter("y", {s.I});
  s.given["y"] = s.given["x"];
  s.weighted_loss(s.b.binary(Op::maximum, x, y));
  const Arrays results = interpret(codegen::differentiate(s.graph, false), s.batch, s.given);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_DOUBLE_EQ(results.at("x").numbers[i], s.given["weights_of_the_loss"].numbers[i] / 2);
    EXPECT_DOUBLE_EQ(results.at("y").numbers[i], s.given["weights_of_the_loss"].numbers[i] / 2);
  }
}

TEST(Gradient, OfBroadcastSumsOverTheNewAxes) {
  Sketch s;
  s.weighted_loss(s.b.broadcast(s.parameter("x", {s.B, s.J}), {s.B, s.I, s.J, s.K}, {0, 2}));
  check_gradients(s);
}

TEST(Gradient, OfOneNumberBroadcastIsTheSumOfAll) {
  Sketch s;
  s.weighted_loss(s.b.broadcast(s.parameter("x", {}), {s.B, s.I}, {}));
  check_gradients(s);
}

TEST(Gradient, OfRearrangeIsTheInverseRearrangement) {
  Sketch s;
  graph::Rearrangement r;
  r.atoms = {s.B, s.I, s.K, s.J};
  r.from = {{0}, {1, 2}, {3}};
  r.to = {{2}, {3, 0}, {}, {1}};
  s.weighted_loss(s.b.rearrange(s.parameter("x", {s.B, s.I * s.K, s.J}), r, {s.K, s.J * s.B, Dim::constant(1), s.I}));
  check_gradients(s);
}

TEST(Gradient, OfOneSliceIsPaddedWithZeros) {
  Sketch s;
  s.weighted_loss(s.b.slice(s.parameter("x", {s.B, s.J}), 1, 2, Dim::constant(3)));
  check_gradients(s);
}

TEST(Gradient, OfSlicesThatTileAValueIsOneConcat) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.B, s.J});
  const NodeId a = s.b.slice(x, 1, 0, Dim::constant(3)), b = s.b.slice(x, 1, 3, Dim::constant(4));
  s.weighted_loss(s.b.concat({s.b.unary(Op::exp, b), s.b.unary(Op::tanh, a)}, 1, s.J));
  check_gradients(s);
  const graph::Graph joint = codegen::differentiate(s.graph, false);
  EXPECT_EQ(joint[joint.outputs.back().node].op, Op::concat);
  EXPECT_EQ(joint[joint.outputs.back().node].operands.size(), 2u);
}

TEST(Gradient, OfSlicesThatOverlapOrLeaveGapsAddsUp) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.J, s.J});
  NodeId sum = s.b.constant(0);
  for (const auto& [axis, offset] : {std::pair(0, 0), {0, 1}, {1, 3}, {0, 5}, {1, 0}, {1, 2}}) {
    const NodeId part = s.b.unary(Op::exp, s.b.slice(x, axis, offset, Dim::constant(2)));
    sum = s.b.add(sum, s.b.reduce(Op::reduce_sum, part, {0, 1}));
  }
  s.weighted_loss(s.b.add(s.b.broadcast(sum, {s.J, s.J}, {}), x));
  check_gradients(s);
}

TEST(Gradient, OfConcatGoesToItsParts) {
  Sketch s;
  const NodeId a = s.parameter("a", {s.B, s.I}), b = s.parameter("b", {s.B, s.J}), c = s.parameter("c", {s.B, s.K});
  s.weighted_loss(s.b.concat({a, b, c}, 1, s.I + s.J + s.K));
  check_gradients(s);
}

// Windows that overlap, that leave gaps, that reach over both ends, and that go backwards; and of the transpose.
TEST(Gradient, OfWindowsAddsUpWhereTheyOverlap) {
  struct {
    std::int64_t kernel, windows, offset, stride, dilation;
  } const cases[] = {{3, 7, -1, 1, 1}, {2, 3, 0, 2, 1}, {3, 2, -2, 3, 2},
                     {3, 9, 3, 1, -2}, {1, 4, 1, 1, 1}, {2, 1, 9, 1, 1}};
  for (const auto& c : cases) {
    Sketch s;
    const NodeId x = s.parameter("x", {s.B, s.J, s.I});
    const Dim kernel = Dim::constant(c.kernel), windows = Dim::constant(c.windows);
    const NodeId unfolded = s.b.unfold(s.b.unary(Op::tanh, x), 1, kernel, windows, c.offset, c.stride, c.dilation);
    const NodeId folded = s.b.fold(s.b.unary(Op::exp, unfolded), 1, s.J, c.offset, c.stride, c.dilation);
    s.weighted_loss(s.b.multiply(folded, x));
    check_gradients(s);
  }
}

constexpr int b = 'b', h = 'h', i = 'i', j = 'j', k = 'k';

TEST(Gradient, OfAMatrixProductAgreesForBothOperands) {
  Sketch s;
  s.weighted_loss(s.b.einsum({s.parameter("x", {s.B, s.I}), s.parameter("w", {s.J, s.I})}, {{b, i}, {j, i}, {b, j}}));
  check_gradients(s);
}

TEST(Gradient, OfABatchedProductAgreesForBothOperands) {
  Sketch s;
  const NodeId q = s.parameter("q", {s.B, s.K, s.I, s.J}), v = s.parameter("v", {s.B, s.K, s.I, s.J});
  s.weighted_loss(s.b.einsum({q, v}, {{b, h, i, k}, {b, h, j, k}, {b, h, i, j}}));
  check_gradients(s);
}

TEST(Gradient, OfAnEinsumWithLettersOfOneOperandOnlySpreadsOverThem) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I, s.J, s.K}), y = s.parameter("y", {s.J, s.B});
  s.weighted_loss(s.b.einsum({x, y}, {{i, j, k}, {j, b}, {j}}));
  check_gradients(s);
}

TEST(Gradient, OfAnEinsumOfOneOperandPermutesBack) {
  Sketch s;
  s.weighted_loss(s.b.einsum({s.parameter("x", {s.I, s.J, s.K})}, {{i, j, k}, {k, i}}));
  check_gradients(s);
}

TEST(Gradient, OfReduceSumIsTheSameAlongTheReducedAxes) {
  Sketch s;
  s.weighted_loss(s.b.reduce(Op::reduce_sum, s.parameter("x", {s.B, s.I, s.J}), {0, 2}));
  check_gradients(s);
}

TEST(Gradient, OfReduceMaxGoesToTheLargest) {
  Sketch s;
  s.weighted_loss(s.b.reduce(Op::reduce_max, s.parameter("x", {s.B, s.I, s.J}), {1}));
  check_gradients(s);
}

TEST(Gradient, OfReduceMaxIsSplitEvenlyAmongEquals) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.I});
  s.given["x"].numbers = {1, 3, 2, 3, 3};
  s.loss(s.b.reduce(Op::reduce_max, x, {0}));
  const Arrays results = interpret(codegen::differentiate(s.graph, false), s.batch, s.given);
  const std::vector<double> third = {0, 1.0 / 3, 0, 1.0 / 3, 1.0 / 3};
  EXPECT_EQ(results.at("x").numbers, third);
}

TEST(Gradient, OfSoftmaxAgreesOverTheLastAndOverAMiddleAxis) {
  for (int axis : {1, 2}) {
    Sketch s;
    s.weighted_loss(s.b.softmax(s.parameter("x", {s.B, s.I, s.J}), axis));
    check_gradients(s);
  }
}

TEST(Gradient, OfLayerNormAgreesForValueWeightAndBias) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.B, s.I, s.J}), w = s.parameter("w", {s.J}), bias = s.parameter("bias", {s.J});
  s.weighted_loss(s.b.layer_norm(x, w, bias, {2}, 1e-5));
  check_gradients(s);
}

TEST(Gradient, OfLayerNormOverTwoAxesAndOverAllAgrees) {
  Sketch two;
  const std::vector<Dim> inner{two.I, two.J};
  const NodeId x = two.parameter("x", {two.B, two.I, two.J});
  two.weighted_loss(two.b.layer_norm(x, two.parameter("w", inner), two.parameter("bias", inner), {1, 2}, 1e-6));
  check_gradients(two);
  Sketch all;
  const NodeId y = all.parameter("x", inner);
  all.weighted_loss(all.b.layer_norm(y, all.parameter("w", inner), all.parameter("bias", inner), {0, 1}, 1e-6));
  check_gradients(all);
}

TEST(Gradient, OfCrossEntropyIsTheProbabilitiesWithoutTheLabel) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.B, s.J});
  const NodeId labels = s.labels("labels", {s.B}, 7);
  s.given["labels"].numbers = {0, 6, 3};
  s.loss(s.b.cross_entropy(x, labels));
  const Arrays labelled = s.given;
  const graph::Graph joint = codegen::differentiate(s.graph, false);
  const Arrays results = interpret(joint, s.batch, s.given);
  for (std::int64_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (std::int64_t c = 0; c < 7; ++c) sum += results.at("x").numbers[static_cast<std::size_t>(row * 7 + c)];
    EXPECT_NEAR(sum, 0, 1e-15);
  }
}

TEST(Gradient, OfCrossEntropyAgreesAlsoOfProbabilities) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.B, s.J});
  const NodeId labels = s.labels("labels", {s.B}, 7);
  s.loss(s.b.cross_entropy(s.b.softmax(x, 1), labels));
  check_gradients(s);
}

TEST(Gradient, OfCrossEntropyAgreesOfALabelAToken) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.B, s.I, s.J});
  s.loss(s.b.cross_entropy(x, s.labels("labels", {s.B, s.I}, 7)));
  check_gradients(s);
}

TEST(Gradient, ThatReachesNoParameterNamesItsPath) {
  Sketch s;
  s.parameter("blocks.0.attn.proj.weight", {s.I});
  s.weighted_loss(s.parameter("x", {s.I}));
  try {
    codegen::differentiate(s.graph, false);
    FAIL() << "nothing was refused";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(),
                 "no gradient reaches blocks.0.attn.proj.weight: what it computes is not used on the way to the loss");
  }
}

TEST(Gradient, OfAModelWithoutLossIsRefused) {
  Sketch s;
  s.graph.name = "tiny";
  s.value("outputs", s.parameter("x", {s.I}));
  try {
    codegen::differentiate(s.graph, false);
    FAIL() << "nothing was refused";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "the model tiny has no loss to differentiate");
  }
}

TEST(Gradient, KeepsTheForwardNodesAndTheirIds) {
  Sketch s;
  s.weighted_loss(s.b.unary(Op::gelu, s.parameter("x", {s.I})));
  const std::string forward = codegen::print(s.graph), joint = codegen::print(codegen::differentiate(s.graph, false));
  EXPECT_EQ(joint.substr(0, forward.find("loss")), forward.substr(0, forward.find("loss")));
}

}  // namespace
}  // namespace tessera::test
