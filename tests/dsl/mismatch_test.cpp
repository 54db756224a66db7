// The words for shapes that differ: which axes, and the one suggestion.
#include "dsl/mismatch.hpp"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "dsl/axis.hpp"

namespace {

using namespace tessera;

constexpr auto B = axis<"B">;
constexpr auto T = axis<"T">;
constexpr auto N = axis<"N", 196>;
constexpr auto R = axis<"R", 4>;
constexpr auto H = axis<"H", 3>;
constexpr auto K = axis<"K", 64>;
constexpr auto J = axis<"J", 64>;
constexpr auto D = axis<"D", H * K>;
constexpr auto GH = axis<"GH", 14>;
constexpr auto GW = axis<"GW", 14>;

template <auto... Es>
constexpr Shape shape = Dims<std::remove_cv_t<decltype(Es)>...>::shape;

std::string explained(const Shape& got, const Shape& needed) {
  Text t;
  explain_mismatch(t, got, needed);
  return std::string(t.view());
}
std::string stretched(const Shape& got, const Shape& needed) {
  Text t;
  return suggest_repeat(t, got, needed) ? std::string(t.view()) : "no suggestion";
}

TEST(Mismatch, NamesEveryAxisThatDisagrees) {
  EXPECT_EQ(explained(shape<B, N, H>, shape<B, K, R>), "axis 1 is N=196, needs K=64, axis 2 is H=3, needs R=4");
}

TEST(Mismatch, CountsTheAxesThatItDoesNotName) {
  EXPECT_EQ(explained(shape<H, H, H, H, H, H>, shape<K, K, K, K, K, K>),
            "axis 0 is H=3, needs K=64, axis 1 is H=3, needs K=64, axis 2 is H=3, needs K=64, axis 3 is H=3, needs "
            "K=64, and 2 more");
}

TEST(Mismatch, CountsTheAxesWhereTheNumberOfThemDiffers) {
  EXPECT_EQ(explained(shape<D>, shape<B, N, D>), "it has 1 axis, needs 3");
}

TEST(Mismatch, AsksForTheClassToken) {
  EXPECT_EQ(explained(shape<B, N>, shape<B, N + 1_c>),
            "axis 1 is N=196, needs N+1=197 (one short: was the class token forgotten? did you mean concat<1>(token, "
            "x)?)");
  EXPECT_EQ(explained(shape<B, N + 1_c>, shape<B, N>),
            "axis 1 is N+1=197, needs N=196 (one too many: does it still hold the class token? did you mean "
            "slice<1>(x, 1_c, N)?)");
}

TEST(Mismatch, AsksForAPartOfASum) {
  EXPECT_EQ(explained(shape<B, N + 1_c>, shape<B, N + 1_c + R>),
            "axis 1 is N+1=197, needs N+R+1=201 (short of R=4: was it left out of a concat? did you mean concat<1>(r, "
            "x)?)");
  EXPECT_EQ(explained(shape<B, N + 1_c + R>, shape<B, N + 1_c>),
            "axis 1 is N+R+1=201, needs N+1=197 (too long by R=4: is a slice missing?)");
}

TEST(Mismatch, KnowsWhereAPartOfASumBelongs) {
  EXPECT_EQ(
      explained(shape<B, N>, shape<B, R + N>),
      "axis 1 is N=196, needs N+R=200 (short of R=4: was it left out of a concat? did you mean concat<1>(r, x)?)");
  EXPECT_EQ(
      explained(shape<B, N>, shape<B, N + R>),
      "axis 1 is N=196, needs N+R=200 (short of R=4: was it left out of a concat? did you mean concat<1>(x, r)?)");
  EXPECT_EQ(explained(shape<B, N + K>, shape<B, N + R + K>),
            "axis 1 is K+N=260, needs K+N+R=264 (short of R=4: was it left out of a concat?)");
  EXPECT_EQ(explained(shape<B, R + N>, shape<B, N>),
            "axis 1 is N+R=200, needs N=196 (too long by R=4: is a slice missing? did you mean slice<1>(x, R, N)?)");
  EXPECT_EQ(explained(shape<B, N + R>, shape<B, N>),
            "axis 1 is N+R=200, needs N=196 (too long by R=4: is a slice missing? did you mean slice<1>(x, 0_c, N)?)");
}

TEST(Mismatch, WritesDimsAsCodeDoes) {
  const auto code = [](const Dim& dim) {
    Text t;
    put_code(t, dim.shown);
    return std::string(t.view());
  };
  EXPECT_EQ(code(Dims<std::remove_cv_t<decltype(N + 1_c)>>::shape[0]), "N + 1_c");
  EXPECT_EQ(code(Dims<std::remove_cv_t<decltype(3_c * H * K - 2_c)>>::shape[0]), "3_c * H * K - 2_c");
  EXPECT_EQ(code(Dim::constant(0)), "0_c");
}

TEST(Mismatch, AsksForARenameOfEqualSizes) {
  EXPECT_EQ(explained(shape<B, J>, shape<B, K>),
            "axis 1 is J=64, needs K=64 (equal sizes, different names: if they mean the same, say so with "
            "rename<1>(x, K))");
}

TEST(Mismatch, SaysThatWhatIsKnownLaterCannotBeProved) {
  EXPECT_EQ(explained(shape<T, D>, shape<B, D>),
            "axis 0 is T, needs B (cannot be proved equal: a size is known only when the program runs)");
}

TEST(Mismatch, ShowsADefinition) {
  EXPECT_EQ(explained(shape<B, N>, shape<B, D>), "axis 1 is N=196, needs D=192 (D := H*K)");
}

TEST(Mismatch, SuggestsTheLayerThatMayBeMissingBetweenChannels) {
  Text t;
  explain_mismatch(t, shape<B, K>, shape<B, D>, "a ");
  EXPECT_EQ(t.view(), "axis 1 is K=64, needs D=192 (D := H*K; did you mean a Linear<K, D> in between?)");
  EXPECT_EQ(explained(shape<B, K>, shape<B, D>), "axis 1 is K=64, needs D=192 (D := H*K)");
}

TEST(Mismatch, SuggestsTheRearrangeThatPermutes) {
  EXPECT_EQ(explained(shape<B, D, N>, shape<B, N, D>),
            "axis 1 is D=192, needs N=196, axis 2 is N=196, needs D=192 (did you mean rearrange<b d n -> b n d>?)");
}

TEST(Mismatch, SuggestsTheRearrangeThatMerges) {
  EXPECT_EQ(explained(shape<B, H, N + 1_c, K>, shape<B, N + 1_c, D>),
            "it has 4 axes, needs 3 (did you mean rearrange<b h n k -> b n (h k)>?)");
}

TEST(Mismatch, SuggestsTheRearrangeThatMergesInTheOrderOfTheDefinition) {
  EXPECT_EQ(explained(shape<B, N, K, H>, shape<B, N, D>),
            "it has 4 axes, needs 3 (did you mean rearrange<b n k h -> b n (h k)>?)");
}

TEST(Mismatch, SuggestsTheRearrangeThatSplits) {
  EXPECT_EQ(explained(shape<B, N, D>, shape<B, H, N, K>),
            "it has 3 axes, needs 4 (did you mean rearrange<b n (h k) -> b h n k>?)");
  EXPECT_EQ(explained(shape<B, N, D>, shape<B, K, N, H>),
            "it has 3 axes, needs 4 (did you mean rearrange<b n (h k) -> b k n h>?)");
}

TEST(Mismatch, SuggestsTheRearrangeThatDropsAnAxisOfSizeOne) {
  EXPECT_EQ(explained(shape<B, 1_c, D>, shape<B, D>), "it has 3 axes, needs 2 (did you mean rearrange<b 1 d -> b d>?)");
}

TEST(Mismatch, NamesAxesInFullWhereTheirLettersCollide) {
  EXPECT_EQ(explained(shape<B, GH, GW, D>, shape<B, GH * GW, D>),
            "it has 4 axes, needs 3 (did you mean rearrange<b gh gw d -> b (gh gw) d>?)");
}

TEST(Mismatch, SuggestsNoPatternForTwoAxesOfOneName) {
  EXPECT_EQ(explained(shape<B, N, N, D>, shape<B, D, N, N>),
            "axis 1 is N=196, needs D=192, axis 3 is D=192, needs N=196 (D := H*K)");
}

TEST(Mismatch, SuggestsTheRepeatForAnAxisThatIsMissingOrOfSizeOne) {
  EXPECT_EQ(stretched(shape<B, D>, shape<B, N, D>),
            " (nothing is stretched silently: did you mean repeat<b d -> b n d>, or expand_as?)");
  EXPECT_EQ(stretched(shape<B, 1_c, D>, shape<B, N, D>),
            " (nothing is stretched silently: did you mean repeat<b 1 d -> b n d>?)");
  EXPECT_EQ(stretched(shape<B, K>, shape<B, N, D>), "no suggestion");
  EXPECT_EQ(stretched(shape<D, B>, shape<B, N, D>), "no suggestion");
}

}  // namespace
