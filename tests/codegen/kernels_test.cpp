// What becomes one kernel, what becomes none, and what the verifier of kernels refuses.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "codegen/error.hpp"
#include "codegen/kernels/kernel.hpp"
#include "codegen/kernels/lower.hpp"
#include "codegen/kernels/print.hpp"
#include "codegen/kernels/verify.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/recompute.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/plan/plan.hpp"
#include "dsl/trace.hpp"
#include "models/vit.hpp"
#include "tests/codegen/support/sketch.hpp"

namespace tessera::test {
namespace {

using codegen::Anchor;
using codegen::Expression;
using codegen::Kernel;
using codegen::KernelProgram;
using codegen::Step;
using graph::NodeId;
using graph::Op;

constexpr int b = 'b', i = 'i', j = 'j', k = 'k';

KernelProgram lowered(const graph::Graph& graph) {
  KernelProgram program = codegen::lower(codegen::simplify(codegen::decompose(graph)), codegen::ProgramKind::forward);
  codegen::verify(program);
  return program;
}

NodeId images(Sketch& s) { return s.input("images", {s.B, s.I, s.J}); }

NodeId linear(Sketch& s, NodeId x, const std::string& path, const Dim& to) {
  const NodeId weight = s.parameter(path + ".weight", {to, s.b.shape(x).back()});
  const NodeId bias = s.parameter(path + ".bias", {to});
  const NodeId product = s.b.einsum({x, weight}, {{b, i, j}, {k, j}, {b, i, k}});
  return s.b.add(product, s.b.broadcast(bias, s.b.shape(product), {2}));
}

std::size_t reductions(const Kernel& kernel) {
  std::size_t count = 0;
  for (const Step& step : kernel.steps) count += step.reduces;
  return count;
}

TEST(Fusion, MakesALinearLayerWithBiasGeluAndResidualOneContraction) {
  Sketch s;
  const NodeId x = images(s);
  s.value("outputs", s.b.add(x, s.b.unary(Op::gelu, linear(s, x, "fc", s.J))));
  const KernelProgram program = lowered(s.graph);
  ASSERT_EQ(program.kernels.size(), 1u) << print(program);
  const Kernel& kernel = program.kernels[0];
  EXPECT_EQ(kernel.anchor, Anchor::contraction);
  ASSERT_EQ(kernel.steps.size(), 2u);
  EXPECT_TRUE(kernel.steps[0].reduces);
  ASSERT_EQ(kernel.steps[1].stores.size(), 1u);
  EXPECT_NE(print(program).find("outputs[b, i, j] = add(images[b, i, j], gelu(add(r0, fc.bias[j])))"),
            std::string::npos)
      << print(program);
}

TEST(Fusion, MakesASoftmaxOneRowKernel) {
  Sketch s;
  s.value("outputs", s.b.softmax(images(s), 2));
  const KernelProgram program = lowered(s.graph);
  ASSERT_EQ(program.kernels.size(), 1u) << print(program);
  EXPECT_EQ(program.kernels[0].anchor, Anchor::row);
  EXPECT_EQ(reductions(program.kernels[0]), 2u);  // the largest, and the sum
}

TEST(Fusion, MakesALayerNormOneRowKernelOverOneAxisAndOverTwo) {
  for (const std::vector<int>& axes : {std::vector<int>{2}, {1, 2}}) {
    Sketch s;
    const std::vector<Dim> shape = axes.size() == 1 ? std::vector<Dim>{s.J} : std::vector<Dim>{s.I, s.J};
    const NodeId x = images(s), weight = s.parameter("weight", shape), bias = s.parameter("bias", shape);
    s.value("outputs", s.b.layer_norm(x, weight, bias, axes, 1e-5));
    const KernelProgram program = lowered(s.graph);
    ASSERT_EQ(program.kernels.size(), 1u) << print(program);
    EXPECT_EQ(program.kernels[0].anchor, Anchor::row);
    EXPECT_EQ(reductions(program.kernels[0]), 2u);  // the mean, and the variance
  }
}

TEST(Fusion, MakesTheLayerBeforeASoftmaxAKernelOfItsOwn) {
  Sketch s;
  s.value("outputs", s.b.softmax(linear(s, images(s), "fc", s.K), 2));
  const KernelProgram program = lowered(s.graph);
  ASSERT_EQ(program.kernels.size(), 2u) << print(program);
  EXPECT_EQ(program.kernels[0].anchor, Anchor::contraction);
  EXPECT_EQ(program.kernels[1].anchor, Anchor::row);
}

TEST(Fusion, GivesElementwiseStepsThatMeetAgainOneKernel) {
  Sketch s;
  const NodeId x = s.b.unary(Op::tanh, images(s)), y = s.b.unary(Op::step, s.b.subtract(x, s.b.constant(0.5)));
  s.value("outputs", s.b.multiply(x, s.b.binary(Op::equal, s.b.unary(Op::step, x), y)));
  const KernelProgram program = lowered(s.graph);
  ASSERT_EQ(program.kernels.size(), 1u) << print(program);
  EXPECT_EQ(program.kernels[0].anchor, Anchor::elementwise);
}

TEST(Fusion, NeedsNoKernelForSlicesSplitsPermutationsAndBroadcasts) {
  Sketch s;
  const NodeId wide = linear(s, images(s), "fc", s.K * s.J);
  const graph::Rearrangement heads{{s.B, s.I, s.K, s.J}, {{0}, {1}, {2, 3}}, {{0}, {2}, {3}, {1}}};
  const NodeId y = s.b.rearrange(wide, heads, {s.B, s.K, s.J, s.I});  // split and permuted
  const NodeId part = s.b.slice(y, 2, 1, Dim::constant(3));
  const NodeId scale = s.b.broadcast(s.parameter("scale", {s.K}), s.b.shape(part), {1});
  s.value("outputs", s.b.multiply(s.b.unary(Op::exp, part), scale));
  const KernelProgram program = lowered(s.graph);
  ASSERT_EQ(program.kernels.size(), 2u) << print(program);
  EXPECT_EQ(program.kernels[0].anchor, Anchor::contraction);
  EXPECT_NE(print(program).find("exp(add[b, i2, 7*k+i+1])"), std::string::npos) << print(program);
}

// A mask that a sum reads is compared where it is read; as a product's factor each row would compute it anew.
TEST(Fusion, ComputesAFactorThatFollowsFromItsPlacesOnce) {
  Sketch s;
  const std::vector<Dim> shape{s.I, s.J};
  const NodeId rows = s.b.broadcast(s.b.arange(s.I), shape, {0}), columns = s.b.broadcast(s.b.arange(s.J), shape, {1});
  const NodeId mask = s.b.unary(Op::step, s.b.subtract(rows, columns));
  const NodeId x = images(s);
  s.value("outputs", s.b.multiply(x, s.b.broadcast(mask, s.b.shape(x), {1, 2})));
  const KernelProgram compared = lowered(s.graph);
  ASSERT_EQ(compared.kernels.size(), 1u) << print(compared);
  EXPECT_NE(print(compared).find("step(subtract(index(i), index(j)))"), std::string::npos) << print(compared);

  s.graph.outputs.clear();
  s.value("outputs", s.b.einsum({x, mask}, {{b, i, j}, {k, j}, {b, i, k}}));
  const KernelProgram product = lowered(s.graph);
  ASSERT_EQ(product.kernels.size(), 2u) << print(product);
  EXPECT_EQ(product.kernels[0].anchor, Anchor::elementwise);
  EXPECT_EQ(product.kernels[1].anchor, Anchor::contraction);
  EXPECT_EQ(print(product).find("multiply(images[b, i, j], step("), std::string::npos) << print(product);
}

TEST(Fusion, WritesHeadsWhereTheyAreMerged) {
  Sketch s;
  const NodeId weight = s.parameter("weight", {s.K, s.J, s.J});
  const NodeId heads = s.b.einsum({images(s), weight}, {{b, i, j}, {'h', k, j}, {b, 'h', i, k}});
  const graph::Rearrangement merge{{s.B, s.K, s.I, s.J}, {{0}, {1}, {2}, {3}}, {{0}, {2}, {1, 3}}};
  s.value("outputs", linear(s, s.b.rearrange(heads, merge, {s.B, s.I, s.K * s.J}), "proj", s.J));
  const KernelProgram program = lowered(s.graph);
  ASSERT_EQ(program.kernels.size(), 2u) << print(program);
  for (const Kernel& kernel : program.kernels) EXPECT_EQ(kernel.anchor, Anchor::contraction);
  EXPECT_NE(print(program).find("[b, i, 7*k+j] = r0"), std::string::npos) << print(program);
}

TEST(Fusion, WritesThePartsOfAConcatWhereTheyBelong) {
  Sketch s;
  const NodeId x = images(s), left = linear(s, x, "left", s.K), right = linear(s, x, "right", s.J);
  s.value("outputs", s.b.concat({s.b.unary(Op::relu, left), right}, 2, s.K + s.J));
  const KernelProgram program = lowered(s.graph);
  ASSERT_EQ(program.kernels.size(), 2u) << print(program);
  EXPECT_NE(print(program).find("outputs[b, i, k] = relu("), std::string::npos) << print(program);
  EXPECT_NE(print(program).find("outputs[b, i, j+2] = add("), std::string::npos) << print(program);
}

TEST(Fusion, WritesProductsIntoThePartsOfAConcatThatAreViewsOfThem) {
  Sketch s;  // as the gradients of queries and keys are laid side by side
  const NodeId x = images(s), weight = s.parameter("weight", {s.J, s.K});
  const graph::Rearrangement on_top{{s.B, s.I, s.K}, {{0}, {1}, {2}}, {{}, {0}, {1}, {2}}};
  const auto part = [&](NodeId of) {
    return s.b.rearrange(s.b.einsum({of, weight}, {{b, i, j}, {j, k}, {b, i, k}}), on_top,
                         {Dim::constant(1), s.B, s.I, s.K});
  };
  const NodeId both = s.b.concat({part(x), part(s.b.unary(Op::exp, x))}, 0, Dim::constant(2));
  const graph::Rearrangement beside{{Dim::constant(2), s.B, s.I, s.K}, {{0}, {1}, {2}, {3}}, {{1}, {2}, {0, 3}}};
  s.value("outputs", s.b.rearrange(both, beside, {s.B, s.I, Dim::constant(2) * s.K}));
  const std::string program = print(lowered(s.graph));
  EXPECT_NE(program.find("outputs[b, i, k] = r0"), std::string::npos) << program;
  EXPECT_NE(program.find("outputs[b, i, k+2] = r0"), std::string::npos) << program;
}

TEST(Fusion, ComputesWhatElseIsMadeOfASavedValueWhereItIsReadAnyway) {
  using Small = models::Vit<{.image = 32, .width = 16, .heads = 2, .depth = 3}>;
  const std::string program = print(codegen::lower(
      codegen::recompute(codegen::simplify(codegen::decompose(codegen::differentiate(trace<Small>("small"), false)))),
      codegen::ProgramKind::loss_and_gradients));
  const std::size_t at = program.find("contraction blocks_mlp_fc2_backward ");
  ASSERT_NE(at, std::string::npos) << program;
  const std::string kernel = program.substr(at, program.find("contraction", at + 1) - at);
  EXPECT_NE(kernel.find(" = gelu(blocks.{}.mlp.fc1.add["), std::string::npos) << kernel;
  EXPECT_NE(kernel.find("gelu_gradient(blocks.{}.mlp.fc1.add["), std::string::npos) << kernel;
  EXPECT_EQ(program.find("elementwise blocks_mlp_backward"), std::string::npos) << program;
}

TEST(Fusion, MakesProbabilitiesThatAreComputedAgainTheProductsEpilogue) {
  using Small = models::Vit<{.image = 64, .width = 16, .heads = 2, .depth = 3}>;
  const std::string program = print(codegen::lower(
      codegen::recompute(codegen::simplify(codegen::decompose(codegen::differentiate(trace<Small>("small"), false))),
                         0),
      codegen::ProgramKind::loss_and_gradients));
  const std::size_t at = program.find(" = divide(exp(subtract(multiply(r0, ");
  ASSERT_NE(at, std::string::npos) << program;
  const std::size_t kernel = program.rfind("  contraction ", at);
  EXPECT_EQ(program.substr(kernel, at - kernel).find("row blocks"), std::string::npos) << program;
  EXPECT_EQ(program.find("exp(", at + 30), std::string::npos) << program;
}

TEST(Fusion, KeepsAValueThatARepeatedBlockReadsOutOfTheKernelThatReadsTheBlock) {
  Sketch s;
  const NodeId x = s.b.unary(Op::tanh, images(s));
  s.b.begin_region("blocks", 2);
  const NodeId carry = s.b.carry(s.b.unary(Op::exp, x));
  const NodeId out = s.b.end_region({s.b.multiply(carry, x)})[0];
  s.value("outputs", s.b.add(out, x));
  EXPECT_NO_THROW(lowered(s.graph));
}

// ---- the verifier ----

/// A softmax of a linear layer, with a cross entropy: reductions, locals, labels and stores.
KernelProgram sample() {
  Sketch s;
  const NodeId y = s.b.reduce(Op::reduce_sum, linear(s, images(s), "fc", s.K), {1});
  s.value("outputs", s.b.softmax(y, 1));
  s.loss(s.b.cross_entropy(y, s.labels("labels", {s.B}, 2)));
  return lowered(s.graph);
}

Kernel& with(KernelProgram& program, const std::function<bool(const Kernel&)>& wanted) {
  for (Kernel& kernel : program.kernels)
    if (wanted(kernel)) return kernel;
  throw std::logic_error("the sample has no such kernel");
}
Kernel& anchored(KernelProgram& program, Anchor anchor) {
  return with(program, [=](const Kernel& kernel) { return kernel.anchor == anchor; });
}
Step& storing(Kernel& kernel) {
  for (Step& step : kernel.steps)
    if (!step.reduces) return step;
  throw std::logic_error("the sample's kernel stores nothing");
}
Expression& expression(Kernel& kernel, Expression::Kind kind) {
  for (Expression& e : kernel.expressions)
    if (e.kind == kind) return e;
  throw std::logic_error("the sample's kernel has no such expression");
}

/// Whether the program is refused with a sentence that says so.
void expect_refused(const KernelProgram& program, const std::string& why) {
  try {
    codegen::verify(program);
    ADD_FAILURE() << "nothing was refused, not even that a kernel " << why;
  } catch (const codegen::Error& error) {
    const std::string sentence = error.what();
    EXPECT_NE(sentence.find(why), std::string::npos) << sentence;
    EXPECT_EQ(sentence.rfind("kernels of forward: ", 0), 0u) << sentence;
  }
}

TEST(VerifyKernels, AcceptsTheSample) { EXPECT_NO_THROW(codegen::verify(sample())); }

TEST(VerifyKernels, RefusesAKernelWithoutSteps) {
  KernelProgram p = sample();
  p.kernels[0].steps.clear();
  expect_refused(p, "does nothing");
}

TEST(VerifyKernels, RefusesASweepOverAnOuterAxis) {
  KernelProgram p = sample();
  Kernel& kernel = anchored(p, Anchor::contraction);
  kernel.steps[0].over.push_back(0);
  expect_refused(p, "sweeps over an axis that is not an inner one");
}

TEST(VerifyKernels, RefusesAStepThatStoresNothing) {
  KernelProgram p = sample();
  storing(p.kernels[0]).stores.clear();
  expect_refused(p, "has a step that stores nothing");
}

TEST(VerifyKernels, RefusesAnExpressionThatDoesNotExist) {
  KernelProgram p = sample();
  storing(p.kernels[0]).stores[0].value = codegen::ExprId(1000);
  expect_refused(p, "names an expression that does not exist");
}

TEST(VerifyKernels, RefusesAReductionThatIsReadBeforeItIsDone) {
  KernelProgram p = sample();
  Kernel& kernel = anchored(p, Anchor::row);
  expression(kernel, Expression::Kind::local).step = static_cast<int>(kernel.steps.size());
  expect_refused(p, "reads a reduction before it is done");
}

TEST(VerifyKernels, RefusesALabelThatIsComparedWithAnAxisOutOfScope) {
  KernelProgram p = sample();
  Kernel& kernel = with(p, [](const Kernel& candidate) {
    for (const Expression& e : candidate.expressions)
      if (e.kind == Expression::Kind::index_equals) return true;
    return false;
  });
  expression(kernel, Expression::Kind::index_equals).element.parts.at(0).axis = 99;
  expect_refused(p, "compares an axis outside its scope");
}

TEST(Lower, APartOfAOneHotRowComparesLaterPlaces) {
  Sketch s;
  const NodeId rows = s.b.one_hot(s.labels("labels", {s.B}, 7), s.J);
  s.value("outputs", s.b.slice(rows, 1, 3, Dim::constant(4)));
  const std::string text = codegen::print(lowered(s.graph));
  EXPECT_NE(text.find("(i+3 == labels[b])"), std::string::npos) << text;
}

TEST(VerifyKernels, RefusesTheIndexOfAnAxisOutOfScope) {
  Sketch s;
  const NodeId x = images(s);
  s.value("outputs", s.b.multiply(x, s.b.broadcast(s.b.arange(s.J), s.b.shape(x), {2})));
  KernelProgram p = lowered(s.graph);
  expression(p.kernels[0], Expression::Kind::index).element.parts.at(0).axis = 99;
  expect_refused(p, "takes the index of an axis outside its scope");
}

TEST(VerifyKernels, RefusesAnExpressionThatReadsALaterOne) {
  KernelProgram p = sample();
  Kernel& kernel = anchored(p, Anchor::contraction);
  expression(kernel, Expression::Kind::op).a = codegen::ExprId(static_cast<int>(kernel.expressions.size()) - 1);
  expect_refused(p, "has an expression that reads a later one");
}

// A tensor's number indexes what there is one of for each tensor, and is no number of anything else.
template <class Rows, class Number>
concept Indexes = requires(Rows rows, Number number) { rows[number]; };
template <class A, class B>
concept Compare = requires(A a, B b) { a == b; };
using codegen::TensorId;
static_assert(Indexes<decltype(KernelProgram::tensors), TensorId>);
static_assert(Indexes<decltype(codegen::Plan::layouts), TensorId>);
static_assert(Indexes<decltype(Kernel::axes), int>);
static_assert(!Indexes<decltype(Kernel::axes), TensorId>, "a tensor's number is taken for an axis");
static_assert(!Indexes<decltype(Kernel::expressions), TensorId>, "a tensor's number is taken for an expression");
static_assert(Indexes<decltype(Kernel::expressions), codegen::ExprId>);
static_assert(!Indexes<decltype(Kernel::expressions), int>, "an axis or a step is taken for an expression");
static_assert(!Indexes<decltype(Kernel::steps), codegen::ExprId>, "an expression is taken for a step");
static_assert(!Indexes<decltype(Kernel::axes), codegen::ExprId>, "an expression is taken for an axis");
static_assert(!Indexes<decltype(KernelProgram::kernels), TensorId>, "a tensor's number is taken for a kernel");
static_assert(!Indexes<decltype(KernelProgram::tensors), int>, "an axis or an expression is taken for a tensor");
static_assert(!Indexes<decltype(codegen::Plan::layouts), std::size_t>, "a position is taken for a tensor");
static_assert(Compare<TensorId, TensorId> && !Compare<TensorId, int>, "a tensor's number is compared with another one");

TEST(VerifyKernels, RefusesATensorThatDoesNotExist) {
  KernelProgram p = sample();
  storing(p.kernels[0]).stores[0].to.tensor = codegen::TensorId(1000);
  expect_refused(p, "names a tensor that does not exist");
}

TEST(VerifyKernels, RefusesToWriteAnInput) {
  KernelProgram p = sample();
  for (const codegen::TensorId t : p.tensors.ids())
    if (p.tensors[t].name == "images") storing(p.kernels[0]).stores[0].to.tensor = t;
  expect_refused(p, "writes images, which is not its to change");
}

TEST(VerifyKernels, RefusesAnIndexOfAnotherRank) {
  KernelProgram p = sample();
  expression(anchored(p, Anchor::contraction), Expression::Kind::load).access.index.pop_back();
  expect_refused(p, "indexes images with 2 numbers for 3 dims");
}

TEST(VerifyKernels, RefusesAnIndexByAnAxisOutOfScope) {
  KernelProgram p = sample();
  expression(anchored(p, Anchor::contraction), Expression::Kind::load).access.index[2].parts = {{99, 1}};
  expect_refused(p, "indexes images by an axis outside its scope");
}

TEST(VerifyKernels, RefusesAnIndexPastTheEnd) {
  for (const std::int64_t offset : {1, -1}) {
    KernelProgram p = sample();
    expression(anchored(p, Anchor::contraction), Expression::Kind::load).access.index[2].offset = offset;
    expect_refused(p, "indexes images past the end of dim J=7");
  }
}

TEST(VerifyKernels, RefusesAKernelThatRunsTwiceOrNever) {
  KernelProgram twice = sample(), never = sample();
  twice.order[0].push_back(twice.order[0].front());
  expect_refused(twice, "stands 2 times in the running order");
  never.order[0].pop_back();
  expect_refused(never, "stands 0 times in the running order");
}

}  // namespace
}  // namespace tessera::test
