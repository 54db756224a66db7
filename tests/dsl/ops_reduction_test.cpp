// Reductions: over axes, by einops patterns, and argmax.
#include <type_traits>
#include <vector>

#include "tests/dsl/ops_fixture.hpp"

namespace {

using namespace tessera;
using graph::Op;

constexpr auto B = axis<"B">;
constexpr auto N = axis<"N", 3>;
constexpr auto K = axis<"K", 2>;
constexpr auto G = axis<"G", 2>;
constexpr auto P = axis<"P", 2>;
constexpr auto I = axis<"I", G * P>;

class Reductions : public test::Ops {};

TEST_F(Reductions, GoOverOneAxisOrSeveralOrAll) {
  const auto x = counted<Tensor<B, N, K>>();
  const Tensor<B, K> over_n = sum<1>(x);
  const Tensor<N> over_two = sum<-1, B>(x);
  const Tensor<> over_all = sum(x);
  EXPECT_EQ(run(over_n), (Numbers{6, 9, 24, 27}));
  EXPECT_EQ(run(over_two), (Numbers{14, 22, 30}));
  EXPECT_EQ(run(over_all), Numbers{66});
}

TEST_F(Reductions, AreSumMeanMaxAndMin) {
  const auto x = input<Tensor<B, N>>({3, -1, 7, -2, -5, -5});
  EXPECT_EQ(run(sum<N>(x)), (Numbers{9, -12}));
  EXPECT_EQ(run(mean<N>(x)), (Numbers{3, -4}));
  EXPECT_EQ(run(max<N>(x)), (Numbers{7, -2}));
  EXPECT_EQ(run(min<N>(x)), (Numbers{-1, -5}));
}

TEST_F(Reductions, AMeanOverTheBatchIsDividedByWhatTheBatchIs) {
  const auto x = counted<Tensor<B, N>>();
  const Tensor<N> y = mean<0>(x);
  EXPECT_EQ(graph[graph[node(y).operands[1]].operands[0]].op, Op::extent);
  EXPECT_EQ(run(y), (Numbers{1.5, 2.5, 3.5}));
  EXPECT_EQ(run(mean(x)), Numbers{2.5});
}

TEST_F(Reductions, OfANumberAreTheNumber) {
  const auto x = counted<Tensor<>>();
  EXPECT_EQ(sum(x).id, x.id);
  EXPECT_EQ(mean(x).id, x.id);
}

TEST_F(Reductions, ByPatternReduceTheNamesOfTheLeftOnly) {
  const auto x = counted<Tensor<B, N, K>>();
  const Tensor<B, K> y = reduce<"b n k -> b k", "mean">(x);
  EXPECT_EQ(run(y), run(mean<1>(x)));
  const Tensor<K, N> moved = reduce<"b n k -> k n", "max">(x);
  EXPECT_EQ(run(moved), (Numbers{6, 8, 10, 7, 9, 11}));
  const Tensor<N, 1_c, 1_c> kept = reduce<"b n k -> n 1 1", "sum">(x);
  EXPECT_EQ(run(kept), (Numbers{14, 22, 30}));
  const Tensor<B, N * K> merged = reduce<"b n k -> b (n k)", "sum">(x);
  EXPECT_EQ(run(merged), run(x));
  const Tensor<> all = reduce<"... ->", "min">(x);
  EXPECT_EQ(run(all), Numbers{0});
}

TEST_F(Reductions, ByPatternPoolOverGroups) {
  const auto x = counted<Tensor<B, I, I>>();
  const Tensor<B, G, G> by_name = reduce<"b (h p) (w q) -> b h w", "max">(x, "p"_is(P), "q"_is(P));
  EXPECT_EQ(run(by_name), (Numbers{5, 7, 13, 15, 21, 23, 29, 31}));
  const auto y = counted<Tensor<B, 4_c, 4_c>>();
  const Tensor<B, 2_c, 2_c> by_number = reduce<"b (h 2) (w 2) -> b h w", "mean">(y);
  EXPECT_EQ(run(by_number), (Numbers{2.5, 4.5, 10.5, 12.5, 18.5, 20.5, 26.5, 28.5}));
}

TEST_F(Reductions, ByPatternRecordNoRearrangementWhereNothingMoves) {
  const auto x = counted<Tensor<B, N, K>>();
  reduce<"b n k -> b k", "sum">(x);
  EXPECT_EQ(count(Op::rearrange), 0u);
}

TEST_F(Reductions, ArgmaxIsTheFirstOfTheLargest) {
  const auto x = input<Tensor<B, N>>({3, 7, 7, -5, -5, -5});
  const Tensor<B> at = argmax<1>(x);
  EXPECT_EQ(run(at), (Numbers{1, 0}));
  const auto y = input<Tensor<N, B>>({0, 9, 4, 9, 4, 10});
  const Tensor<B> first = argmax<N>(y);
  EXPECT_EQ(run(first), (Numbers{1, 2}));
}

TEST_F(Reductions, PassPoisonOn) {
  static_assert(std::is_same_v<decltype(sum<0>(Poison{})), Poison>);
  static_assert(std::is_same_v<decltype(argmax<0>(Poison{})), Poison>);
  static_assert(std::is_same_v<decltype(reduce<"b -> ", "sum">(Poison{})), Poison>);
}

}  // namespace
