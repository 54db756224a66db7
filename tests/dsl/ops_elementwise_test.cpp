// Elementwise operations: activations, arithmetic with numbers, comparisons, choices and masks.
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

#include "tests/dsl/ops_fixture.hpp"

namespace {

using namespace tessera;
using graph::Op;
using test::expect_near;

constexpr auto B = axis<"B">;
constexpr auto H = axis<"H", 2>;
constexpr auto T = axis<"T", 3>;
constexpr auto J = axis<"J", T>;
constexpr auto X = axis<"X", 5>;

class Elementwise : public test::Ops {
 protected:
  Tensor<X> x = input<Tensor<X>>({-2, -0.5, 0, 1, 3});
  Tensor<X> positive = input<Tensor<X>>({0.25, 1, 2, 3, 10});
  /// f of each number.
  Numbers each(const Tensor<X>& of, const std::function<double(double)>& f) const {
    Numbers result = given.at(graph[of.id].name).numbers;
    for (double& number : result) number = f(number);
    return result;
  }
};

TEST_F(Elementwise, FunctionsAreThoseOfTheStandardLibrary) {
  expect_near(run(exp(x)), each(x, [](double v) { return std::exp(v); }));
  expect_near(run(log(positive)), each(positive, [](double v) { return std::log(v); }));
  expect_near(run(sqrt(positive)), each(positive, [](double v) { return std::sqrt(v); }));
  expect_near(run(erf(x)), each(x, [](double v) { return std::erf(v); }));
  expect_near(run(abs(x)), each(x, [](double v) { return std::abs(v); }));
  expect_near(run(-x), each(x, [](double v) { return -v; }));
  expect_near(run(sigmoid(x)), each(x, [](double v) { return 1 / (1 + std::exp(-v)); }));
}

// torch.nn.functional.gelu(x, approximate="tanh") and silu(x) of PyTorch 2, in double precision.
TEST_F(Elementwise, ActivationsAreTorchs) {
  expect_near(run(gelu_tanh(x)),
              {-0.04540230591222494, -0.15428599017485606, 0, 0.8411919906082768, 2.996362607918227});
  expect_near(run(silu(x)), {-0.2384058440442351, -0.1887703343990727, 0, 0.7310585786300049, 2.8577223804672998});
  expect_near(run(Sequential<GeluTanh, Silu>{}(x)), run(silu(gelu_tanh(x))));
}

TEST_F(Elementwise, PowersAreWhole) {
  expect_near(run(pow<1>(x)), each(x, [](double v) { return v; }));
  expect_near(run(pow<2>(x)), each(x, [](double v) { return v * v; }));
  expect_near(run(pow<7>(x)), each(x, [](double v) { return std::pow(v, 7); }));
  expect_near(run(pow<-3>(positive)), each(positive, [](double v) { return std::pow(v, -3); }));
  expect_near(run(pow<0>(x)), {1, 1, 1, 1, 1});
}

TEST_F(Elementwise, NumbersStandOnEitherSide) {
  expect_near(run(1.5 - x), each(x, [](double v) { return 1.5 - v; }));
  expect_near(run(2 / positive), each(positive, [](double v) { return 2 / v; }));
  expect_near(run(3 * x - 1), each(x, [](double v) { return 3 * v - 1; }));
}

TEST_F(Elementwise, MaximumAndMinimumTakeTheEndsOfShapes) {
  const auto wide = input<Tensor<B, T>>({0, 5, -3, 2, -2, 9});
  const auto narrow = input<Tensor<T>>({1, -1, 2});
  const Tensor<B, T> larger = maximum(wide, narrow);
  const Tensor<B, T> smaller = minimum(narrow, wide);
  EXPECT_EQ(run(larger), (Numbers{1, 5, 2, 2, -1, 9}));
  EXPECT_EQ(run(smaller), (Numbers{0, -1, -3, 1, -2, 2}));
}

TEST_F(Elementwise, ComparisonsAreOneOrZero) {
  const auto a = input<Tensor<T>>({1, 2, 3});
  const auto b = input<Tensor<T>>({2, 2, 2});
  EXPECT_EQ(run(less(a, b)), (Numbers{1, 0, 0}));
  EXPECT_EQ(run(greater(a, b)), (Numbers{0, 0, 1}));
  EXPECT_EQ(run(equal(a, b)), (Numbers{0, 1, 0}));
  EXPECT_EQ(run(less_equal(a, b)), (Numbers{1, 1, 0}));
  EXPECT_EQ(run(greater_equal(a, b)), (Numbers{0, 1, 1}));
  EXPECT_EQ(run(not_equal(a, b)), (Numbers{1, 0, 1}));
  EXPECT_EQ(run(greater(a, 2)), (Numbers{0, 0, 1}));
  EXPECT_EQ(run(less(2, a)), (Numbers{0, 0, 1}));
  EXPECT_EQ(run(less_equal(a, 2)), (Numbers{1, 1, 0}));
  EXPECT_EQ(run(not_equal(a, 3)), (Numbers{1, 1, 0}));
}

TEST_F(Elementwise, ComparisonsOfInfinitiesAndNanAreTorchs) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto a = input<Tensor<T>>({inf, nan, -inf});
  const auto b = input<Tensor<T>>({inf, 1, inf});
  EXPECT_EQ(run(less_equal(a, b)), (Numbers{1, 0, 1}));
  EXPECT_EQ(run(greater(a, b)), (Numbers{0, 0, 0}));
  EXPECT_EQ(run(not_equal(a, b)), (Numbers{0, 1, 1}));
}

TEST_F(Elementwise, WhereChooses) {
  const auto condition = input<Tensor<T>>({1, 0, 2});
  const auto a = counted<Tensor<B, T>>();
  const Tensor<B, T> chosen = where(condition, a, -1);
  EXPECT_EQ(run(chosen), (Numbers{0, -1, 2, 3, -1, 5}));
  const Tensor<B, T> wide = where(a, condition, 7.0);
  EXPECT_EQ(run(wide), (Numbers{7, 0, 2, 1, 0, 2}));
  EXPECT_EQ(run(where(condition, 1.0, 0.0)), (Numbers{1, 0, 1}));
}

TEST_F(Elementwise, WhatWhereLeavesOutMayBeInfinite) {
  const auto a = input<Tensor<T>>({4, 0, 1});
  EXPECT_EQ(run(where(a, 1 / a, 0.0)), (Numbers{0.25, 0, 1}));
}

// torch.softmax(scores.masked_fill(torch.ones(3, 3).tril() <= 0, torch.finfo(torch.float).min), -1)
TEST_F(Elementwise, ACausalMaskLeavesLaterKeysOut) {
  const auto scores = counted<Tensor<T, J>>();
  const Tensor<T, J> masked = mask_scores(scores, causal_mask<T, J>());
  expect_near(run(softmax<J>(masked)), {1, 0, 0, 0.26894142136999516, 0.7310585786300049, 0, 0.09003057317038045,
                                        0.2447284710547976, 0.6652409557748218});
}

TEST_F(Elementwise, AMaskOfKeysIsWidenedByName) {
  const auto scores = counted<Tensor<B, H, T, J>>();
  const auto keep = input<Tensor<B, J>>({1, 1, 0, 0, 1, 1});
  const auto p = softmax<J>(mask_scores(scores, expand_as(keep, scores)));
  const Numbers rows = run(p);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool left_out = i < 18 ? i % 3 == 2 : i % 3 == 0;
    EXPECT_EQ(rows[i] == 0, left_out) << i;
  }
}

// torch.ones(3, 3).tril(): of places, so that no table grows with the square of the tokens.
TEST_F(Elementwise, ACausalMaskComparesPlacesAndHasNoTable) {
  EXPECT_EQ(run(causal_mask<T, J>()), (Numbers{1, 0, 0, 1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(run(causal_mask<T, X>()), (Numbers{1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(count(Op::table), 0u);
}

TEST_F(Elementwise, ArangeNumbersThePlaces) {  // torch.arange(3).float()
  const Tensor<T> places = arange<T>();
  EXPECT_EQ(run(places * 2 + 1), (Numbers{1, 3, 5}));
}

TEST_F(Elementwise, OperationsPassPoisonOn) {
  const Poison p;
  static_assert(std::is_same_v<decltype(where(p, 1.0, 0.0)), Poison>);
  static_assert(std::is_same_v<decltype(1 - abs(-exp(p))), Poison>);
  static_assert(std::is_same_v<decltype(less_equal(p, x)), Poison>);
  static_assert(std::is_same_v<decltype(maximum(p, minimum(x, p))), Poison>);
  static_assert(std::is_same_v<decltype(silu(gelu_tanh(pow<2>(p)))), Poison>);
}

}  // namespace
