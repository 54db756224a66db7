// Operations of the DSL that are made of several nodes: their graphs verify, and their gradients are the differences.
#include <gtest/gtest.h>

#include <string>

#include "codegen/error.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/simplify.hpp"
#include "dsl/graph/op_name.hpp"
#include "dsl/tessera.hpp"
#include "tests/codegen/support/gradient_check.hpp"

namespace {

using namespace tessera;

constexpr auto B = axis<"B">;
constexpr auto C = axis<"C", 2>;
constexpr auto D = axis<"D", 3>;
constexpr auto J = axis<"J", 4>;
constexpr auto H = axis<"H", 2>;
constexpr auto N = axis<"N", 3>;
constexpr auto CLS = axis<"CLS", 1>;
constexpr auto T = axis<"T", CLS + N>;
constexpr auto S = axis<"S", T>;

class DslOps : public testing::Test {
 protected:
  template <class X>
  X parameter(double low = -2, double high = 2) {
    return X(sketch.parameter("p" + std::to_string(sketch.graph.nodes.size()), X::shape.dims(), low, high));
  }
  template <class X>
  X input() {
    return X(sketch.input("x" + std::to_string(sketch.graph.nodes.size()), X::shape.dims()));
  }
  Tensor<B> labels() { return Tensor<B>(sketch.labels("labels", {B.value}, 4)); }

  template <class X>
  void check(const X& y) {
    sketch.weighted_loss(node_of(y));
    test::check_gradients(sketch);
  }
  void check_loss(const Tensor<>& loss) {
    sketch.loss(node_of(loss));
    test::check_gradients(sketch);
  }

  test::Sketch sketch;
  RecorderScope scope{sketch.b};
};

TEST_F(DslOps, ConvolutionWithStrideAndPadding) {
  const auto x = input<Tensor<B, C, 5_c, 4_c>>();
  const auto w = parameter<Tensor<D, C, 3_c, 3_c>>();
  const auto y = conv2d<Convolution{.padding = 1}>(x, w);
  const auto v = parameter<Tensor<C, D, 3_c, 2_c>>();
  check(conv2d<Convolution{.stride = 2, .padding = {1, 0}, .dilation = {1, 2}}>(y, v));
}

// Neither the windows of a convolution nor their gradient are values in memory: GEMMs read them from the feature map
// and from the gradient of what it gives.
TEST_F(DslOps, ConvolutionsStoreNoWindows) {
  const auto x = input<Tensor<B, C, 5_c, 4_c>>();
  const auto w = parameter<Tensor<D, C, 3_c, 3_c>>();
  const auto v = parameter<Tensor<C, D, 3_c, 3_c>>();
  check(conv2d<Convolution{.padding = 1}>(silu(conv2d<Convolution{.padding = 1}>(x, w)), v));
  const graph::Graph g = codegen::simplify(codegen::decompose(codegen::differentiate(sketch.graph, true)));
  int einsums = 0;
  for (const graph::Node& n : g.nodes) {
    einsums += n.op == graph::Op::einsum;
    EXPECT_TRUE(n.shape.size() <= 4 || n.op == graph::Op::unfold) << graph::op_name(n.op);
  }
  EXPECT_EQ(einsums, 6);  // two forward, and of each the gradients of weight and input
}

TEST_F(DslOps, ConvolutionThatTiles) {
  const auto x = input<Tensor<B, C, 6_c, 4_c>>();
  const auto w = parameter<Tensor<D, C, 3_c, 2_c>>();
  check(conv2d<Convolution{.stride = {3, 2}}>(x, w));
}

TEST_F(DslOps, PartsAndStacks) {
  const auto x = parameter<Tensor<T, D>>();
  const auto token = take<CLS>(x);
  const auto patches = part<N>(x);
  const auto sum = patches + expand_as(token, patches);
  check(permute<1, 0, 2>(stack<1>(sum, patches)));
}

TEST_F(DslOps, SplitAndReshape) {
  const auto x = parameter<Tensor<T, H * D>>();
  const auto [token, patches] = split<T>(x, CLS, N);
  const auto heads = reshape<N, H, infer>(patches);
  const auto wide = expand<N, H, D>(sum<CLS>(reshape<CLS, H, D>(token)));
  check(transpose<0, 2>(heads * wide));
}

TEST_F(DslOps, Pooling) {
  const auto x = parameter<Tensor<4_c, 6_c, D>>();
  const auto largest = reduce<"(h 2) (w 3) d -> d h w", "max">(x);
  const auto smallest = reduce<"(h 2) (w 3) d -> d h w", "min">(x);
  check(largest * smallest - reduce<"(h 2) (w 3) d -> d h w", "mean">(x));
}

TEST_F(DslOps, MeansOverTheBatch) {
  const auto x = input<Tensor<B, D>>();
  const auto w = parameter<Tensor<J, D>>();
  check(mean<0>(pow<2>(linear(x, w))));
}

TEST_F(DslOps, Activations) {
  const auto x = parameter<Tensor<N, D>>();
  const auto y = gelu_tanh(x) + silu(x) + abs(x) * erf(x);
  check(maximum(y, 1 - x) + minimum(x, exp(y)) + pow<-1>(sqrt(2 + pow<2>(x))) + log(1 + pow<4>(x)));
}

TEST_F(DslOps, GroupNorm) {
  const auto x = input<Tensor<B, 6_c, N, C>>();
  GroupNorm<2_c, 6_c> norm(0.1);
  norm.weight.id = sketch.parameter("weight", Tensor<6_c>::shape.dims(), 0.5, 2);
  norm.bias.id = sketch.parameter("bias", Tensor<6_c>::shape.dims());
  check(norm(x));
}

TEST_F(DslOps, GroupNormOfANamedAxis) {
  constexpr auto W = axis<"W", 6>;
  const auto x = input<Tensor<B, W, N>>();
  GroupNorm<3_c, W> norm(0.1);
  norm.weight.id = sketch.parameter("weight", Tensor<W>::shape.dims(), 0.5, 2);
  norm.bias.id = sketch.parameter("bias", Tensor<W>::shape.dims());
  check(norm(x));
}

TEST_F(DslOps, ConvolutionThatIsPaddedAtTheEnd) {
  const auto x = input<Tensor<B, C, 5_c, 4_c>>();
  const auto w = parameter<Tensor<D, C, 3_c, 3_c>>();
  check(conv2d<Convolution{.stride = 2, .padding_end = 1}>(x, w));
}

TEST_F(DslOps, TransposedConvolutionThatTiles) {
  const auto x = input<Tensor<B, C, 3_c, 2_c>>();
  ConvTranspose2d<C, D, 2_c> up;
  up.weight.id = sketch.parameter("weight", Tensor<C, D, 2_c, 2_c>::shape.dims());
  up.bias.id = sketch.parameter("bias", Tensor<D>::shape.dims());
  const auto y = up(x);
  static_assert(decltype(y)::shape == Tensor<B, D, 6_c, 4_c>::shape);
  check(pow<2>(y));
}

TEST_F(DslOps, MapsThatAreEnlargedAndReduced) {
  const auto x = input<Tensor<B, C, 3_c, 5_c>>();
  const auto w = parameter<Tensor<C, C, 3_c, 3_c>>();
  const auto map = conv2d<Convolution{.padding = 1}>(x, w);
  const auto larger = resize<5_c, 8_c>(map);
  static_assert(decltype(larger)::shape == Tensor<B, C, 5_c, 8_c>::shape);
  check(pow<2>(resize<4_c, 2_c>(larger)));
}

TEST_F(DslOps, MaxPooling) {
  const auto x = input<Tensor<B, C, 5_c, 4_c>>();
  check(max_pool<2>(x));
}

TEST_F(DslOps, RectifiersThatLeakOrAreSmooth) {
  const auto x = parameter<Tensor<N, D>>();
  check(leaky_relu<0.2>(x) * softplus(x));
}

TEST_F(DslOps, NearestCodes) {
  const auto x = input<Tensor<B, N, D>>();
  const auto codes = parameter<Tensor<J, D>>();
  check(gather(codes, integers(nearest(x, codes))) * x);
}

TEST_F(DslOps, NoGradientPassesAStop) {
  const auto x = parameter<Tensor<N, D>>();
  sketch.weighted_loss(node_of(x + stop_gradient(exp(x) * x)));
  const graph::Graph joint = codegen::differentiate(sketch.graph, false);
  const auto weighted = [&](double slope) {  // what the loss is of x alone
    test::Sketch straight;
    straight.weighted_loss(straight.parameter("x", Tensor<N, D>::shape.dims(), slope, slope));
    return test::interpret(codegen::differentiate(straight.graph, false), 3, straight.given).at("x").numbers;
  };
  const auto found = test::interpret(joint, 3, sketch.given);
  EXPECT_EQ(found.at("p0").numbers, weighted(1));
  const auto decomposed = test::interpret(codegen::simplify(codegen::decompose(joint)), 3, sketch.given);
  EXPECT_EQ(decomposed.at("p0").numbers, weighted(1));
  for (const graph::Node& n : codegen::decompose(joint).nodes) EXPECT_NE(n.op, graph::Op::stop_gradient);
}

// As VQGAN weighs one loss by the norm of its gradient: the weight is a value, through which gradients flow as well.
TEST_F(DslOps, GradientsWithinTheDeclaration) {
  const auto x = parameter<Tensor<N, D>>(0.5, 1.5);
  const auto y = exp(x) * x;
  const Tensor<> loss = sum(y * y);
  const auto slope = gradient(loss, y);
  sketch.loss(node_of(sum(slope * x) * 0.25 + sum(gradient(loss, x))));
  sketch.graph = codegen::expand_gradients(sketch.graph);
  test::check_gradients(sketch);
  for (const graph::Node& n : sketch.graph.nodes) EXPECT_NE(n.op, graph::Op::gradient);
}

TEST_F(DslOps, AGradientOfWhatDoesNotDependOnItIsRefused) {
  const auto x = parameter<Tensor<N, D>>();
  const auto other = parameter<Tensor<N, D>>();
  sketch.graph.name = "probe";
  sketch.loss(node_of(sum(gradient(Tensor<>(sum(x * x)), other))));
  try {
    codegen::expand_gradients(sketch.graph);
    FAIL() << "it was taken";
  } catch (const codegen::Error& error) {
    EXPECT_STREQ(error.what(), "probe takes the gradient of what does not depend on p1");
  }
}

TEST_F(DslOps, RmsNormOverTwoAxes) {
  const auto x = parameter<Tensor<J, N, D>>();
  RmsNorm<N, D> norm(0.1);
  norm.weight.id = sketch.parameter("weight", Tensor<N, D>::shape.dims(), 0.5, 2);
  check(norm(quick_gelu(x)));
}

TEST_F(DslOps, RotaryPositionsOfBothPairings) {
  const auto x = parameter<Tensor<H, T, J>>();
  const auto turned = rope<Rope{.temperature = 10, .offset = 1, .rows = 3, .columns = 5}, N, 1_c>(x);
  check(rope<Rope{.pairs = RopePairs::halves, .places = RopePlaces::centres}, 1_c, N>(turned));
}

TEST_F(DslOps, RotaryPositionsWithLearnedFrequencies) {
  const auto x = input<Tensor<B, H, 6_c, J>>();
  const auto frequencies = parameter<Tensor<2_c, H, 2_c>>();
  check(rope_mixed<Rope{.columns_first = true}, 2_c, 3_c>(x, frequencies) * sin(x));
}

TEST_F(DslOps, RelativePositionBiasesWithAndWithoutRowsForTheClassToken) {
  const auto scores = parameter<Tensor<H, 7_c, 7_c>>();
  const auto among = relative_position_bias<2_c, 3_c, 1_c>(parameter<Tensor<15_c, H>>());
  const auto all = relative_position_bias<2_c, 3_c, 1_c>(parameter<Tensor<18_c, H>>());
  const auto row = relative_position_bias<1_c, 7_c>(parameter<Tensor<13_c, H>>());
  check(softmax<2>(scores + among * all) * row);
}

TEST_F(DslOps, RowsOfATableByDistance) {
  const auto queries = parameter<Tensor<H, T, D>>();
  const auto scores = einsum<"h i d, j i d -> h i j">(queries, by_distance<T>(parameter<Tensor<7_c, D>>()));
  const auto of_one = einsum<"h i d, x y d -> h i">(queries, by_distance<1_c>(parameter<Tensor<1_c, D>>()));
  check(einsum<"h i j, h i -> h i j">(softmax<2>(scores), of_one));
}

TEST_F(DslOps, MaskedAttention) {
  const auto q = parameter<Tensor<H, T, D>>();
  const auto k = parameter<Tensor<H, S, D>>();
  const Tensor<H, T, S> scores = einsum<"h t d, h s d -> h t s">(q, k);
  check(softmax<S>(mask_scores(scores, causal_mask<T, S>())));
}

TEST_F(DslOps, ChoicesByComparison) {
  const auto x = parameter<Tensor<N, D>>();
  const auto y = parameter<Tensor<N, D>>();
  check(where(greater(x, y), pow<2>(x), -1 * y) + less_equal(x, 0.5) * y);
}

TEST_F(DslOps, EmbeddingsOfLabels) {
  const auto table = parameter<Tensor<J, D>>();
  check(gather(table, labels()));
}

TEST_F(DslOps, CrossEntropyWithLabelSmoothing) {
  const auto x = input<Tensor<B, D>>();
  const auto w = parameter<Tensor<J, D>>();
  check_loss(cross_entropy<0.1>(linear(x, w), labels()));
}

TEST_F(DslOps, CrossEntropyOfSoftTargets) {
  const auto x = input<Tensor<B, D>>();
  const auto w = parameter<Tensor<J, D>>();
  const auto targets = softmax<-1>(input<Tensor<B, J>>());
  check_loss(cross_entropy(linear(x, w), targets));
}

TEST_F(DslOps, CrossEntropyOfProbabilities) {
  const auto x = input<Tensor<B, D>>();
  const auto w = parameter<Tensor<J, D>>();
  check_loss(cross_entropy_of_probabilities(softmax<J>(linear(x, w)), labels()));
}

TEST_F(DslOps, ArgmaxVerifiesAndHasNoGradient) {
  const auto x = parameter<Tensor<N, J>>();
  const auto at = argmax<J>(x);
  check(x + expand_as(at, x));
}

}  // namespace
