// Tensors: what converts, and what poison does.
#include <gtest/gtest.h>

#include <type_traits>

#include "dsl/tessera.hpp"

namespace {

using namespace tessera;

constexpr auto B = axis<"B">;
constexpr auto N = axis<"N", 49>;
constexpr auto H = axis<"H", 2>;
constexpr auto K = axis<"K", 4>;
constexpr auto D = axis<"D", H * K>;

TEST(Conversion, BetweenEqualNormalFormsIsTheIdentity) {
  graph::Graph g;
  graph::Builder builder(g);
  const RecorderScope scope(builder);
  const Tensor<B, N + 1_c, H * K> x(builder.input("x", Tensor<B, N + 1_c, H * K>::shape.dims()));
  const Tensor<B, 1_c + N, D> y = x;
  EXPECT_EQ(y.id, x.id);
  EXPECT_EQ(g.nodes.size(), 1U);
}

TEST(Conversion, MakesTheDeclaredNamesTheOnesThatAreShown) {
  graph::Graph g;
  graph::Builder builder(g);
  const RecorderScope scope(builder);
  const Tensor<B, H * K> x(builder.input("x", Tensor<B, H * K>::shape.dims()));
  const Tensor<B, D> y = x;
  Text t;
  g[y.id].shape[1].print(t);
  EXPECT_EQ(t.view(), "D=8");
}

TEST(Conversion, TakesPoisonWithoutAWord) {
  const Tensor<B, N> x = Poison{};
  EXPECT_EQ(x.id, graph::none);
}

TEST(Poison, PassesThroughEveryOperation) {
  const Poison x;
  static_assert(std::is_same_v<decltype(x + x), Poison>);
  static_assert(std::is_same_v<decltype(x + Tensor<B>{}), Poison>);
  static_assert(std::is_same_v<decltype(x / 2.0), Poison>);
  static_assert(std::is_same_v<decltype(gelu(x)), Poison>);
  static_assert(std::is_same_v<decltype(relu(x)), Poison>);
  static_assert(std::is_same_v<decltype(tanh(x)), Poison>);
  static_assert(std::is_same_v<decltype(sigmoid(x)), Poison>);
  static_assert(std::is_same_v<decltype(softmax<9>(x)), Poison>);
  static_assert(std::is_same_v<decltype(rearrange<"a -> b">(x)), Poison>);
  static_assert(std::is_same_v<decltype(repeat<"a -> b">(x)), Poison>);
  static_assert(std::is_same_v<decltype(einsum<"a, a -> a">(x, Tensor<B>{})), Poison>);
  static_assert(std::is_same_v<decltype(concat<0>(x, Tensor<B>{})), Poison>);
  static_assert(std::is_same_v<decltype(chunk<0>(x, H)), std::array<Poison, 2>>);
  static_assert(std::is_same_v<decltype(concat<0>(chunk<0>(x, H), H)), Poison>);
  static_assert(std::is_same_v<decltype(slice<0>(x, 0_c, N)), Poison>);
  static_assert(std::is_same_v<decltype(take<0>(x, 0_c)), Poison>);
  static_assert(std::is_same_v<decltype(rename<0>(x, N)), Poison>);
  static_assert(std::is_same_v<decltype(reshape<B>(x)), Poison>);
  static_assert(std::is_same_v<decltype(cross_entropy(x, Tensor<B>{})), Poison>);
  static_assert(std::is_same_v<decltype(Linear<D, D>{}(x)), Poison>);
  static_assert(std::is_same_v<decltype(LayerNorm<D>{}(x)), Poison>);
  static_assert(std::is_same_v<decltype(Sequential<Linear<D, D>, Gelu>{}(x)), Poison>);
}

TEST(Poison, InADimPoisonsTheTensorsThatHaveIt) {
  constexpr auto W = axis<"W", PoisonDim{}>;
  static_assert(decltype(W)::poisoned && decltype(4_c * W)::poisoned && decltype(W / H)::poisoned);
  static_assert(poisoned<Tensor<B, W>>);
  static_assert(std::is_same_v<decltype(Linear<W, D>{}(Tensor<B, N>{})), Poison>);
  static_assert(std::is_same_v<decltype(sinusoidal<N, W>()), Poison>);
  static_assert(std::is_same_v<decltype(arange<W>()), Poison>);
  const Tensor<B, N> x = Tensor<B, W>{};
  EXPECT_EQ(x.id, graph::none);
}

TEST(Shape, PrintsNamesAndSizes) {
  Text t;
  Tensor<B, H, N + 1_c, 3_c>::shape.print(t);
  EXPECT_EQ(t.view(), "[B, H=2, N+1=50, 3]");
}

}  // namespace
