// The algebra of dims: normal form, printing, definition, division.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "dsl/axis.hpp"
#include "dsl/division.hpp"

namespace {

using namespace tessera;

constexpr auto B = axis<"B">;
constexpr auto N = axis<"N", 196>;
constexpr auto H = axis<"H", 3>;
constexpr auto K = axis<"K", 64>;
constexpr auto D = axis<"D", H * K>;

std::string printed(const Dim& d) {
  Text t;
  d.print(t);
  return std::string(t.view());
}

TEST(NormalForm, DoesNotDependOnTheOrderOfWriting) {
  static_assert((N + 1_c).value == (1_c + N).value);
  static_assert((H * K).value == (K * H).value);
  static_assert((2_c * N + N).value == (3_c * N).value);
  static_assert(((N + 1_c) * (N - 1_c)).value == (N * N - 1_c).value);
}

TEST(NormalForm, TooLongAnExpressionEqualsNothingNotEvenItself) {
  Dim product = Dim::constant(1);
  for (int i = 0; i < 7; ++i) product = product * Dim::axis("P", 2);
  EXPECT_TRUE(product.normal.overflow);
  EXPECT_FALSE(product == product);
}

TEST(Axis, IsNominal) {
  constexpr auto words = axis<"WORDS", 64>;
  static_assert(!(words.value == K.value));
  static_assert(axis<"K", 64>.value == K.value);
}

TEST(Axis, EqualsItsDefinition) {
  static_assert(D.value == (K * H).value);
  static_assert(axis<"M", 4_c * D>.value == (4_c * H * K).value);
}

TEST(Axis, WhoseDefinitionIsANumberIsPrimitive) {
  constexpr auto G = axis<"G", 28_c / axis<"P", 4>>;
  static_assert(G.value == axis<"G", 7>.value);
  static_assert(!(G.value == axis<"F", 7>.value));
  static_assert(std::is_same_v<decltype(G), decltype(axis<"G", std::int64_t{7}>)>);
}

TEST(Axis, WithoutExtentIsUnknownUntilTheProgramRuns) {
  static_assert(!B.value.known() && !(B * N).value.known() && N.value.known());
  EXPECT_EQ((B * N).value.value(5), 980);
}

TEST(Printing, ShowsNamesAndSizes) {
  EXPECT_EQ(printed(B.value), "B");
  EXPECT_EQ(printed((1_c + N).value), "N+1=197");
  EXPECT_EQ(printed(D.value), "D=192");
  EXPECT_EQ(printed((3_c * D).value), "3*D=576");
  EXPECT_EQ(printed((B * N - 2_c).value), "B*N-2");
  EXPECT_EQ(printed((7_c * 2_c).value), "14");
  EXPECT_EQ(printed(Dim::constant(0)), "0");
}

TEST(Printing, ShowsAQuotientByTheNamesOfItsDefinition) {
  EXPECT_EQ(printed((D / H).value), "K=64");
  EXPECT_EQ(printed((3_c * D / 3_c).value), "D=192");
}

TEST(Division, IsExactForFactorsAndForNumbers) {
  static_assert((D / K).value == H.value);
  static_assert((224_c / axis<"P", 16>).value == (14_c).value);
  static_assert((B * D / B).value == D.value);
  static_assert(((N + 1_c) * D / (N + 1_c)).value == D.value);
  static_assert(((N * N - 1_c) / (N + 1_c)).value == (N - 1_c).value);
}

TEST(Division, SaysWhyItIsNotExact) {
  using Result = Division::Result;
  static_assert(divide((192_c).value, axis<"H", 5>.value).result == Result::remainder);
  static_assert(divide(axis<"D", 192>.value, H.value).result == Result::no_factor);
  static_assert(divide(B.value, H.value).result == Result::unknown);
  static_assert(divide(N.value, (0_c).value).result == Result::zero);
  static_assert(divide(N.value, (H - 3_c).value).result == Result::zero);
}

TEST(FactorOrder, IsPartOfAMergedAxis) {
  const auto lines_up = [](auto a, auto b) { return a.value.lines_up_with(b.value); };
  EXPECT_TRUE(lines_up(H * K, D));
  EXPECT_FALSE(lines_up(K * H, D));
  EXPECT_TRUE(lines_up(N * D, N * H * K));
  EXPECT_FALSE(lines_up(D * N, N * H * K));
  EXPECT_TRUE(lines_up(H * H * K, H * D));
  EXPECT_FALSE(lines_up(H * K * H, H * D));
  EXPECT_TRUE(lines_up(1_c * H * K, D));
  EXPECT_TRUE(lines_up(3_c * H * K, 3_c * D));
  EXPECT_FALSE(lines_up(3_c * K * H, 3_c * D));
  // A number has its place where an axis is split or merged.
  const auto nests = [](auto a, auto b) { return a.value.nests_as(b.value); };
  EXPECT_TRUE(nests(3_c * H * K, 3_c * D));
  EXPECT_FALSE(nests(H * 3_c * K, 3_c * D));
  EXPECT_FALSE(nests(D * 3_c, 3_c * D));
  EXPECT_TRUE(lines_up(D * 3_c, 3_c * D));
  EXPECT_TRUE(nests(H * 2_c * 3_c * K, H * (6_c * K)));
  EXPECT_TRUE(nests(3_c * 4_c, 12_c));
  // Numbers at two places leave the order open, and so does a quotient that is a product.
  EXPECT_TRUE(nests(2_c * H * 3_c, 6_c * H));
  EXPECT_TRUE(lines_up(N * K * H / N, D));
}

TEST(Text, CutsWhatDoesNotFit) {
  Text t;
  for (int i = 0; i < Text::capacity + 10; ++i) t.put("x");
  EXPECT_EQ(t.size, Text::capacity);
  EXPECT_EQ(t.chars[Text::capacity], '\0');
}

}  // namespace
