// The pattern parser: einops' grammar, and a position for every mistake.
#include "dsl/pattern.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using tessera::parse_pattern;
using tessera::parse_pattern_for;
using tessera::Pattern;
using tessera::PatternSide;

/// A side as it was understood: (h w) for a group of several, 1 for one of none.
std::string printed(const Pattern& p, const PatternSide& side) {
  std::string text;
  for (int g = 0; g < side.groups; ++g) {
    text += text.empty() ? "" : " ";
    if (side.count[g] == 0) text += "1";
    if (side.count[g] > 1) text += "(";
    for (int i = 0; i < side.count[g]; ++i) {
      text += i ? " " : "";
      text += p.name[side.name[side.first[g] + i]];
    }
    if (side.count[g] > 1) text += ")";
  }
  return text;
}

std::string understood(std::string_view text, int rank = 0) {
  const Pattern p = rank ? parse_pattern_for(text, rank) : parse_pattern(text);
  if (p.problem) return std::to_string(p.at) + ": " + p.problem;
  std::string all = printed(p, p.operand[0]);
  if (p.operands == 2) all += ", " + printed(p, p.operand[1]);
  return all + " -> " + printed(p, p.result);
}

TEST(Pattern, IsParsedAtCompileTime) {
  constexpr Pattern p = parse_pattern("b n (s h k) -> s b h n k");
  static_assert(!p.problem && p.operands == 1 && p.names == 5);
  static_assert(p.operand[0].groups == 3 && p.operand[0].count[2] == 3);
  static_assert(p.result.groups == 5 && p.name[p.result.name[0]] == "s");
}

TEST(Pattern, ReadsBothSides) {
  EXPECT_EQ(understood("b c (gh p) (gw q) -> b (gh gw) (c p q)"), "b c (gh p) (gw q) -> b (gh gw) (c p q)");
  EXPECT_EQ(understood("b i k, b j k -> b i j"), "b i k, b j k -> b i j");
  EXPECT_EQ(understood("i,j->i j"), "i, j -> i j");
  EXPECT_EQ(understood(" a   b->b a "), "a b -> b a");
}

TEST(Pattern, TakesOnesAndEmptyBracketsAsAxesOfSizeOne) {
  EXPECT_EQ(understood("b 1 d -> b d ()"), "b 1 d -> b d 1");
  EXPECT_EQ(understood("b (1 d) -> b d"), "b d -> b d");
}

TEST(Pattern, TakesLongNamesWithDigitsAndUnderscores) {
  EXPECT_EQ(understood("batch h1 w_2 -> batch (h1 w_2)"), "batch h1 w_2 -> batch (h1 w_2)");
}

TEST(Pattern, ExpandsDotsToTheAxesThatAreNotNamed) {
  EXPECT_EQ(understood("b ... d -> b d ...", 4), "b ...0 ...1 d -> b d ...0 ...1");
  EXPECT_EQ(understood("b ... d -> (b ...) d", 4), "b ...0 ...1 d -> (b ...0 ...1) d");
  EXPECT_EQ(understood("b ... d -> d b ...", 2), "b d -> d b");
}

TEST(Pattern, TellsWhereASyntaxErrorIs) {
  EXPECT_EQ(understood("b n (h k -> b h n k"), "5: this bracket is never closed");
  EXPECT_EQ(understood("b n h k) -> b h n k"), "8: this bracket was never opened");
  EXPECT_EQ(understood("b ((h k)) -> b h k"), "4: brackets within brackets");
  EXPECT_EQ(understood("b n d"), "6: -> is missing");
  EXPECT_EQ(understood(""), "1: -> is missing");
  EXPECT_EQ(understood("b n - d"), "5: a lone -, where -> may be meant");
  EXPECT_EQ(understood("a -> a -> a"), "8: a second ->");
  EXPECT_EQ(understood("a b -> a, b"), "9: the right side has one shape, without commas");
  EXPECT_EQ(understood("a, b, c -> a"), "6: a pattern has at most two operands");
  EXPECT_EQ(understood("b n*d -> b n d"), "4: a character that no pattern has");
  EXPECT_EQ(understood("b n n -> b n"), "5: this name stands twice on one side");
  EXPECT_EQ(understood("b n -> b n b"), "12: this name stands twice on one side");
  EXPECT_EQ(understood("b _n -> b _n"), "3: a name that starts or ends with _");
  EXPECT_EQ(understood("b n_ -> b n_"), "3: a name that starts or ends with _");
  EXPECT_EQ(understood("b 2n -> b 2n"), "3: a name starts with a letter");
  EXPECT_EQ(understood("b 0 -> b"), "3: an axis of size 0");
}

TEST(Pattern, TellsWhereDotsAreWrong) {
  EXPECT_EQ(understood("b .. d -> b d"), "3: dots only stand as three: ...");
  EXPECT_EQ(understood("... b ... -> b ..."), "7: a second ... on one side");
  EXPECT_EQ(understood("(b ...) -> b ..."), "4: ... in brackets on the left");
  EXPECT_EQ(understood("b d -> b ... d"), "10: ... stands on the right only");
}

TEST(Pattern, RemembersWhereEachNameStands) {
  constexpr Pattern p = parse_pattern("b i k, b k j -> b i j");
  static_assert(p.operand[0].position[2] == 5 && p.operand[1].position[1] == 10 && p.result.position[2] == 21);
}

}  // namespace
