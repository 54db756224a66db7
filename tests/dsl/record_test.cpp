// What operations record: structural ones are run on counted arrays and compared with index arithmetic written by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dsl/tessera.hpp"
#include "tests/dsl/structure.hpp"

namespace {

using namespace tessera;
using graph::Op;
using test::Array;

constexpr auto B = axis<"B">;
constexpr auto C = axis<"C", 2>;
constexpr auto P = axis<"P", 3>;
constexpr auto G = axis<"G", 4>;
constexpr auto I = axis<"I", G * P>;
constexpr auto H = axis<"H", 2>;
constexpr auto K = axis<"K", 5>;
constexpr auto D = axis<"D", H * K>;
constexpr auto N = axis<"N", 7>;
constexpr std::int64_t batch = 2;

class Record : public testing::Test {
 protected:
  template <class T>
  T input() {
    return T(builder.input("x" + std::to_string(graph.nodes.size()), T::shape.dims()));
  }
  /// The result for inputs that count 0, 1, 2, ...
  template <class T>
  Array run(const T& x) {
    std::map<graph::NodeId, Array> leaves;
    for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.nodes.size()); ++id)
      if (graph[id].op == Op::input) leaves[id] = test::iota(test::sizes(graph[id].shape, batch));
    EXPECT_EQ(graph[x.id].shape, T::shape.dims());
    return test::run(graph, x.id, std::move(leaves), batch);
  }
  template <class T>
  const graph::Node& node(const T& x) const {
    return graph[x.id];
  }

  graph::Graph graph;
  graph::Builder builder{graph};
  RecorderScope scope{builder};
};

TEST_F(Record, RearrangeCutsPatchesChannelFirst) {
  const auto image = input<Tensor<B, C, I, I>>();
  const Tensor<B, G * G, C * P * P> patches =
      rearrange<"b c (gh p) (gw q) -> b (gh gw) (c p q)">(image, "p"_is(P), "q"_is(P));
  const Array result = run(patches);
  for (std::int64_t i = 0; i < test::count(result.size); ++i) {
    const auto at = test::unravel(i, {batch, 4, 4, 2, 3, 3});  // b gh gw c p q
    const std::int64_t pixel = test::ravel({at[0], at[3], at[1] * 3 + at[4], at[2] * 3 + at[5]}, {batch, 2, 12, 12});
    ASSERT_EQ(result.data[static_cast<std::size_t>(i)], static_cast<double>(pixel));
  }
}

TEST_F(Record, RearrangeSplitsHeadsAndBack) {
  const auto x = input<Tensor<B, N, D>>();
  const Tensor<B, H, N, K> split = rearrange<"b n (h k) -> b h n k">(x, "h"_is(H));
  EXPECT_EQ(run(split).data[1 * 7 * 5 + 2 * 5 + 3], 2 * 10 + 1 * 5 + 3);
  const Tensor<B, N, D> merged = rearrange<"b h n k -> b n (h k)">(split);
  EXPECT_EQ(run(merged), test::iota({batch, 7, 10}));
}

TEST_F(Record, RearrangeWithDotsMovesWhatIsNotNamed) {
  const auto x = input<Tensor<B, N, K>>();
  const Tensor<K, B, N> y = rearrange<"... k -> k ...">(x);
  EXPECT_EQ(run(y).data[3], 15);  // k = 0, b = 0, n = 3
}

TEST_F(Record, RearrangeTakesAxesOfSizeOneAwayAndPutsThemIn) {
  const auto x = input<Tensor<B, 1_c, K>>();
  const Tensor<1_c, K, B> y = rearrange<"b 1 k -> 1 k b">(x);
  EXPECT_EQ(run(y).data[3], 6);  // k = 1, b = 1
}

TEST_F(Record, RepeatOfANewLeadingAxisIsOneBroadcast) {
  const auto token = input<Tensor<1_c, D>>();
  const Tensor<B, 1_c, D> tokens = repeat<"n d -> b n d">(token, "b"_is(B));
  EXPECT_EQ(node(tokens).op, Op::broadcast);
  EXPECT_EQ(node(tokens).axes, (std::vector<int>{1, 2}));
  EXPECT_EQ(node(tokens).operands, std::vector<graph::NodeId>{token.id});
}

TEST_F(Record, RepeatSplitsPermutesAndMerges) {
  const auto x = input<Tensor<N, D>>();
  const Tensor<K, B * N, H> y = repeat<"n (h k) -> k (b n) h">(x, "h"_is(H), "b"_is(B));
  const Array result = run(y);
  for (std::int64_t i = 0; i < test::count(result.size); ++i) {
    const auto at = test::unravel(i, {5, batch, 7, 2});  // k b n h
    ASSERT_EQ(result.data[static_cast<std::size_t>(i)], static_cast<double>(at[2] * 10 + at[3] * 5 + at[0]));
  }
}

TEST_F(Record, RepeatTakesNumbersAndOnesOnTheRight) {
  const auto x = input<Tensor<1_c, K>>();
  const Tensor<3_c * K, 1_c> y = repeat<"1 k -> (3 k) 1">(x);
  EXPECT_EQ(run(y).data, (std::vector<double>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
}

TEST_F(Record, ReshapeMergesNeighboursAndSplitsAxes) {
  const auto x = input<Tensor<B, G, P, D>>();
  const Tensor<B, I, H, K> y = reshape<B, I, H, K>(x);
  EXPECT_EQ(run(y), test::iota({batch, 12, 2, 5}));
}

TEST_F(Record, ReshapePutsAndDropsAxesOfSizeOneAnywhere) {
  const auto x = input<Tensor<B, 3_c, 4_c>>();
  const Tensor<B, 1_c, 12_c> before = reshape<B, 1_c, 12_c>(x);
  const Tensor<B, 12_c, 1_c> behind = reshape<B, 12_c, 1_c>(x);
  const Tensor<B, 3_c, 4_c> back = reshape<B, 3_c, 4_c>(before);
  const Tensor<B, 1_c, 3_c, 1_c, 2_c, 2_c> split = reshape<B, 1_c, 3_c, 1_c, 2_c, 2_c>(x);
  const std::vector<double> numbers = test::iota({batch, 3, 4}).data;
  for (const Array& y : {run(before), run(behind), run(back), run(split)}) EXPECT_EQ(y.data, numbers);
}

TEST_F(Record, ReshapeLeavesTrailingAxesOfSizeOne) {
  const auto x = input<Tensor<B, D, 1_c>>();
  EXPECT_EQ(run(reshape<B, H, K>(x)), test::iota({batch, 2, 5}));
}

TEST_F(Record, ChunksAreTheSlicesOfAnAxis) {
  const auto x = input<Tensor<B, N, D>>();
  const std::array<Tensor<B, N, K>, 2> parts = {chunk<2>(x, H)[0], chunk<-1>(x, H)[1]};
  EXPECT_EQ(node(parts[0]).offset, 0);
  EXPECT_EQ(run(parts[1]).data[0], 5);
}

TEST_F(Record, ConcatOfChunksIsTheWhole) {
  const auto x = input<Tensor<B, N, D>>();
  const Tensor<B, N, D> whole = concat<2>(chunk<2>(x, H), H);
  EXPECT_EQ(run(whole), test::iota({batch, 7, 10}));
}

TEST_F(Record, ConcatAddsExtents) {
  const auto token = input<Tensor<B, 1_c, K>>();
  const auto tokens = input<Tensor<B, N, K>>();
  const Tensor<B, N + 1_c, K> all = concat<1>(token, tokens);
  const Array result = run(all);
  EXPECT_EQ(result.data[4], 4);      // the token's last
  EXPECT_EQ(result.data[5], 0);      // the tokens' first
  EXPECT_EQ(result.data[8 * 5], 5);  // the second token
}

TEST_F(Record, SliceAndTakeCutOutOfAnAxis) {
  const auto x = input<Tensor<B, N + 1_c, K>>();
  const Tensor<B, N, K> patches = slice<1>(x, 1_c, N);
  EXPECT_EQ(run(patches).data[0], 5);
  const Tensor<B, K> token = take<1>(x, 0_c);
  EXPECT_EQ(run(token).data, (std::vector<double>{0, 1, 2, 3, 4, 40, 41, 42, 43, 44}));
}

TEST_F(Record, RenameKeepsTheNumbers) {
  const auto x = input<Tensor<B, K>>();
  const auto y = rename<1>(x, axis<"WORDS", 5>);
  static_assert(!(decltype(y)::shape == decltype(x)::shape));
  EXPECT_EQ(run(y), test::iota({batch, 5}));
}

TEST_F(Record, AdditionBroadcastsMissingLeadingAxesOnEitherSide) {
  const auto x = input<Tensor<B, N, K>>();
  const auto y = input<Tensor<N, K>>();
  for (const auto& sum : {x + y, y + x}) {
    EXPECT_EQ(node(sum).op, Op::add);
    EXPECT_EQ(node(sum).shape, x.shape.dims());
  }
  const Tensor<B, N, K> product = y * x;
  const graph::Node& widened = graph[node(product).operands[0]];
  EXPECT_EQ(widened.op, Op::broadcast);
  EXPECT_EQ(widened.axes, (std::vector<int>{1, 2}));
}

TEST_F(Record, DivisionByANumberMultipliesByItsReciprocal) {
  const auto x = input<Tensor<B, N>>();
  const auto y = x / sqrt(axis<"E", 16>);
  EXPECT_EQ(node(y).op, Op::multiply);
  const graph::Node& number = graph[graph[node(y).operands[1]].operands[0]];
  EXPECT_EQ(number.op, Op::constant);
  EXPECT_EQ(number.value, 0.25);
}

TEST_F(Record, EinsumKeepsLettersAndTakesDimsFromThem) {
  const auto q = input<Tensor<B, N, K>>();
  const auto k = input<Tensor<B, G, K>>();
  const Tensor<B, N, G> scores = einsum<"b i k, b j k -> b i j">(q, k);
  EXPECT_EQ(node(scores).letters, (std::vector<std::vector<int>>{{0, 1, 2}, {0, 3, 2}, {0, 1, 3}}));
  const Tensor<N> sums = einsum<"b i k -> i">(q);
  EXPECT_EQ(node(sums).letters, (std::vector<std::vector<int>>{{0, 1, 2}, {1}}));
}

TEST_F(Record, LinearIsAnEinsumAndABroadcastBias) {
  Linear<K, D> map;
  bind(map, "map");
  const Tensor<B, N, D> y = map(input<Tensor<B, N, K>>());
  const graph::Node& sum = node(y);
  EXPECT_EQ(sum.op, Op::add);
  EXPECT_EQ(sum.path, "map");
  EXPECT_EQ(graph[sum.operands[0]].letters, (std::vector<std::vector<int>>{{0, 1, 2}, {3, 2}, {0, 1, 3}}));
  EXPECT_EQ(graph[sum.operands[1]].axes, std::vector<int>{2});
  const graph::Node& weight = graph[map.weight.id];
  EXPECT_EQ(weight.name, "map.weight");
  EXPECT_EQ(weight.init.kind, graph::Init::Kind::uniform);
  EXPECT_DOUBLE_EQ(weight.init.b, 1 / std::sqrt(5.0));
  EXPECT_DOUBLE_EQ(weight.init.a, -weight.init.b);
  EXPECT_TRUE(weight.decay);
  EXPECT_FALSE(graph[map.bias.id].decay);
}

TEST_F(Record, LinearWithoutBiasIsAnEinsum) {
  LinearWithoutBias<K, D> map;
  bind(map, "map");
  const Tensor<B, N, D> y = map(input<Tensor<B, N, K>>());
  EXPECT_EQ(node(y).op, Op::einsum);
  EXPECT_EQ(node(y).letters, (std::vector<std::vector<int>>{{0, 1, 2}, {3, 2}, {0, 1, 3}}));
  EXPECT_EQ(graph[map.weight.id].name, "map.weight");
  EXPECT_TRUE(graph[map.weight.id].decay);
}

TEST_F(Record, PatchConvolutionMultipliesPatchesRowByRow) {
  PatchConvolution<C, D, P> proj;
  bind(proj, "proj");
  const Tensor<B, G * G, D> tokens = proj(input<Tensor<B, C, I, I>>());
  const graph::Node& product = graph[node(tokens).operands[0]];
  ASSERT_EQ(product.op, Op::einsum);
  EXPECT_EQ(product.operands[1], proj.weight.id);
  EXPECT_EQ(graph[proj.weight.id].shape, (Tensor<D, C, P, P>::shape.dims()));
  EXPECT_DOUBLE_EQ(graph[proj.weight.id].init.b, 1 / std::sqrt(18.0));
  const Array patches = run(Tensor<B, G * G, C, P, P>(product.operands[0]));
  for (std::int64_t i = 0; i < test::count(patches.size); ++i) {
    const auto at = test::unravel(i, {batch, 4, 4, 2, 3, 3});  // b gh gw c p q
    const std::int64_t pixel = test::ravel({at[0], at[3], at[1] * 3 + at[4], at[2] * 3 + at[5]}, {batch, 2, 12, 12});
    ASSERT_EQ(patches.data[static_cast<std::size_t>(i)], static_cast<double>(pixel));
  }
}

TEST_F(Record, UnstackTakesEachPositionOfAnAxis) {
  const auto x = input<Tensor<B, 3_c, K>>();
  const std::array<Tensor<B, K>, 3> parts = unstack<1>(x, 3_c);
  EXPECT_EQ(run(parts[0]).data, (std::vector<double>{0, 1, 2, 3, 4, 15, 16, 17, 18, 19}));
  EXPECT_EQ(run(parts[2]).data, (std::vector<double>{10, 11, 12, 13, 14, 25, 26, 27, 28, 29}));
  EXPECT_EQ(run(unstack<-2>(x, 3_c)[1]).data[0], 5);
}

TEST_F(Record, LayerNormNormalisesOverItsOwnAxes) {
  LayerNorm<N, K> norm(1e-6);
  bind(norm, "norm");
  const Tensor<B, N, K> y = norm(input<Tensor<B, N, K>>());
  EXPECT_EQ(node(y).axes, (std::vector<int>{1, 2}));
  EXPECT_EQ(node(y).value, 1e-6);
  EXPECT_EQ(graph[norm.weight.id].init.a, 1);
  EXPECT_FALSE(graph[norm.weight.id].decay);
  EXPECT_EQ(LayerNorm<K>{}.epsilon, 1e-5);
}

TEST_F(Record, SoftmaxCountsAxesFromEitherEnd) {
  const auto x = input<Tensor<B, N, K>>();
  EXPECT_EQ(node(softmax<1>(x)).axes, std::vector<int>{1});
  EXPECT_EQ(node(softmax<-1>(x)).axes, std::vector<int>{2});
}

TEST_F(Record, ActivationsAreElementwise) {
  const auto x = input<Tensor<B, N>>();
  EXPECT_EQ(node(gelu(x)).op, Op::gelu);
  EXPECT_EQ(node(relu(x)).op, Op::relu);
  EXPECT_EQ(node(tanh(x)).op, Op::tanh);
  EXPECT_EQ(node(sin(x)).op, Op::sin);
  EXPECT_EQ(node(cos(x)).op, Op::cos);
  const auto modules = Sequential<Gelu, Relu, Tanh, Sigmoid>{}(x);
  EXPECT_EQ(node(modules).shape, x.shape.dims());
}

// Corners of the formula; PyTorch's tables: Sinusoidal.TablesArePyTorchs.
TEST_F(Record, SinusoidalTableIsVaswanis) {
  const auto table = sinusoidal<N, D>();
  const std::vector<double>& data = node(table).data;
  ASSERT_EQ(data.size(), 70U);
  EXPECT_DOUBLE_EQ(data[0], 0);
  EXPECT_DOUBLE_EQ(data[1], 1);
  EXPECT_DOUBLE_EQ(data[3 * 10 + 4], std::sin(3 * std::pow(10000, -0.4)));
  EXPECT_DOUBLE_EQ(data[3 * 10 + 5], std::cos(3 * std::pow(10000, -0.4)));
  EXPECT_EQ((sinusoidal<N, D>().id), table.id) << "the same table stands once";
}

TEST_F(Record, AParameterThatWasNotBoundIsRefused) {
  const Linear<K, K> map;
  EXPECT_THROW(map(input<Tensor<B, K>>()), std::logic_error);
}

TEST(Recorder, OperationsOutsideOfATraceAreRefused) { EXPECT_THROW(gelu(Tensor<B, K>(0)), std::logic_error); }

}  // namespace
