// The target tree: what its checker dies on, and how it is printed.
#include "codegen/emit/tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "codegen/error.hpp"

namespace tessera::codegen::tree {
namespace {

Function function(Block body) {
  Function f;
  f.name = "kernel";
  f.parameters = {{"const real*", "x"}, {"real*", "y"}};
  f.body = std::move(body);
  return f;
}

/// The sentence with which a body is refused; empty when it is accepted. lanes and f are known.
std::string refusal(Block body) {
  try {
    check(function(std::move(body)), {"lanes", "f"});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Statement uses(const std::string& variable) { return evaluate(call("f", {name(variable)})); }

TEST(TreeCheck, AcceptsParametersKnownNamesAndDeclarationsInScope) {
  EXPECT_EQ(refusal({declare("const int", "n", name("lanes")),
                     loop("i", integer(0), binary("<", name("i"), name("n")), 1,
                          {declare("const vec", "a", index(name("x"), name("i"))), uses("a"), uses("y")}),
                     loop("i", integer(0), binary("<", name("i"), name("n")), 2, {uses("i")})}),
            "");
}

TEST(TreeCheck, DiesOnAnUndefinedNameWhereverItStands) {
  const std::string sentence = "emitted function kernel uses z, which nothing declares";
  EXPECT_EQ(refusal({uses("z")}), sentence);
  EXPECT_EQ(refusal({evaluate(call("z", {}))}), sentence);
  EXPECT_EQ(refusal({assign("z", integer(1))}), sentence);
  EXPECT_EQ(refusal({declare("int", "n", name("z"))}), sentence);
  EXPECT_EQ(refusal({declare("int", "z", name("z"))}), sentence);  // not yet there where it is declared
  EXPECT_EQ(refusal({loop("i", name("z"), integer(1), 1, {})}), sentence);
  EXPECT_EQ(refusal({loop("i", integer(0), binary("<", name("i"), name("z")), 1, {})}), sentence);
  EXPECT_EQ(refusal({when(name("z"), {})}), sentence);
  EXPECT_EQ(refusal({when(name("x"), {declare("int", "z", integer(1))}, {uses("z")})}), sentence);
  EXPECT_EQ(refusal({scope({give(binary("+", integer(1), index(name("x"), name("z"))))})}), sentence);
}

TEST(TreeCheck, DiesOnANameThatIsUsedAfterItsScope) {
  const std::string sentence = "emitted function kernel uses z, which nothing declares";
  EXPECT_EQ(refusal({scope({declare("int", "z", integer(1))}), uses("z")}), sentence);
  EXPECT_EQ(refusal({loop("z", integer(0), binary("<", name("z"), integer(1)), 1, {}), uses("z")}), sentence);
}

TEST(TreeCheck, DiesOnANameThatIsDeclaredTwiceOrHidden) {
  const std::string sentence = "emitted function kernel declares x twice, or hides it";
  EXPECT_EQ(refusal({declare("int", "x", integer(1))}), sentence);
  EXPECT_EQ(refusal({scope({declare("int", "x", integer(1))})}), sentence);
  EXPECT_EQ(refusal({loop("x", integer(0), integer(1), 1, {})}), sentence);
}

TEST(TreePrint, PutsParenthesesWherePrecedenceNeedsThemAndNowhereElse) {
  const Expr a = name("a"), b = name("b"), c = name("c");
  EXPECT_EQ(print(binary("*", binary("+", a, b), c)), "(a + b) * c");
  EXPECT_EQ(print(binary("+", binary("*", a, b), c)), "a * b + c");
  EXPECT_EQ(print(binary("-", a, binary("-", b, c))), "a - (b - c)");
  EXPECT_EQ(print(binary("-", binary("-", a, b), c)), "a - b - c");
  EXPECT_EQ(print(binary("/", a, binary("*", b, c))), "a / (b * c)");
  EXPECT_EQ(print(binary("*", a, binary("%", b, c))), "a * (b % c)");
  EXPECT_EQ(print(binary("<", binary("+", a, b), c)), "a + b < c");
  EXPECT_EQ(print(binary("*", a, integer(-3))), "a * (-3)");
  EXPECT_EQ(print(index(binary("+", a, b), binary("+", b, c))), "(a + b)[b + c]");
  EXPECT_EQ(print(call("f", {binary("+", a, b), c})), "f(a + b, c)");
}

TEST(TreePrint, LeavesOutWhatAddsOrMultipliesNothing) {
  const Expr a = name("a");
  EXPECT_EQ(print(a + integer(0)), "a");
  EXPECT_EQ(print(integer(0) + a), "a");
  EXPECT_EQ(print(integer(2) + integer(3)), "5");
  EXPECT_EQ(print(a * 1), "a");
  EXPECT_EQ(print(a * 0), "0");
  EXPECT_EQ(print(integer(4) * 3), "12");
  EXPECT_EQ(print(a * 7 + integer(2)), "a * 7 + 2");
}

TEST(TreePrint, WritesRealsThatReadBackAsTheSameNumber) {
  EXPECT_EQ(print(real(1)), "real(1.0)");
  EXPECT_EQ(print(real(0.1)), "real(0.1)");
  EXPECT_EQ(print(real(-1.0 / 3)), "real(-0.3333333333333333)");
  EXPECT_EQ(print(real(1e-300)), "real(1e-300)");
  EXPECT_EQ(print(real(-INFINITY)), "-INFINITY");
}

TEST(TreePrint, LaysAFunctionOutAsClangFormatWould) {
  Function f =
      function({declare("vec", "sum", call("v_zero", {})),
                loop("i", integer(0), binary("<", name("i"), integer(8)), 4,
                     {declare("const vec", "a", call("v_load", {name("x") + name("i")})),
                      assign("sum", call("v_add", {name("sum"), name("a")}))}),
                loop("i", integer(0), binary("<", name("i"), integer(8)), 1, {uses("i")}),
                when(binary("<", name("a"), name("b")), {uses("x")}), when(name("a"), {uses("x")}, {uses("y")}),
                comment("the sum"), pragma("omp simd"), scope({give(name("sum"))}), scope({give(nullptr)}), blank()});
  f.comment = {"x < 8"};
  EXPECT_EQ(print(f), R"(// x < 8
static void kernel(const real* x, real* y) {
  vec sum = v_zero();
  for (std::int64_t i = 0; i < 8; i += 4) {
    const vec a = v_load(x + i);
    sum = v_add(sum, a);
  }
  for (std::int64_t i = 0; i < 8; ++i) f(i);
  if (a < b) f(x);
  if (a) {
    f(x);
  } else {
    f(y);
  }
  // the sum
#pragma omp simd
  {
    return sum;
  }
  {
    return;
  }

}
)");
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

TEST(TreePrint, BreaksCallsAndParametersBefore120ColumnsUnderTheFirstOfThemOrWhereItTakesFewerLines) {
  std::vector<Expr> arguments;
  Function f = function({});
  for (int i = 0; i < 20; ++i) {
    const std::string n = "a_rather_long_name_" + std::to_string(i);
    arguments.push_back(name(n));
    f.parameters.push_back({"const real*", n});
  }
  f.body = {evaluate(call("f", arguments)),
            loop("i", integer(0), binary("<", name("i"), integer(3)), 1, {assign("y", call("f", arguments))})};
  const std::string text = print(f), declaration = print_declaration(f);
  EXPECT_LE(longest_line(text), 120u) << text;
  EXPECT_GT(longest_line(text), 90u) << text;
  EXPECT_TRUE(text.starts_with("static void kernel(\n    const real* x, real* y, const real* a_rather")) << text;
  EXPECT_NE(text.find("\n    a_rather_long_name_"), std::string::npos) << text;
  EXPECT_LE(longest_line(declaration), 120u) << declaration;
  EXPECT_TRUE(declaration.ends_with("a_rather_long_name_19);\n")) << declaration;
  f.parameters.resize(5);
  EXPECT_NE(print(f).find("\n                   const real* a_rather_long_name_2) {\n"), std::string::npos) << print(f);
}

TEST(TreePrint, WritesALambdaOnOneLineWhereItFits) {
  EXPECT_EQ(
      print({lambda("left", {{"int", "row"}, {"int", "k"}}, {give(index(name("x"), name("row") * 8 + name("k")))})}, 1),
      "  const auto left = [=](int row, int k) { return x[row * 8 + k]; };\n");
  EXPECT_EQ(print({lambda("twice", {{"int", "i"}}, {uses("i"), uses("i")})}, 0),
            "const auto twice = [=](int i) {\n  f(i);\n  f(i);\n};\n");
}

TEST(TreePrint, GivesALoopsVariableItsTypeAndBreaksALongAssignmentBehindItsSign) {
  EXPECT_EQ(print({loop("int", "i", integer(0), binary("<", name("i"), integer(3)), 2, {uses("i")})}, 0),
            "for (int i = 0; i < 3; i += 2) f(i);\n");
  const std::string long_name(80, 'n');
  EXPECT_EQ(print({evaluate(binary("=", index(name("y"), name("i")), name(long_name) + name(long_name)))}, 1),
            "  y[i] =\n      " + long_name + " + " + long_name + ";\n");
}

TEST(TreePrint, WritesLoopsThatCompilersUnrollAsCallsOfALambda) {
  const Block fma{assign("sum[row][column]", call("g", {name("row"), name("column")})), uses("row")};
  EXPECT_EQ(print({unroll("row", integer(6), {unroll("column", integer(4), {fma[0]})})}, 0),
            "unroll<6, 4>([&](auto row, auto column) { sum[row][column] = g(row, column); });\n");
  EXPECT_EQ(print({unroll("row", name("rows"), {fma[1], unroll("column", integer(4), fma)})}, 1),
            "  unroll<rows>([&](auto row) {\n    f(row);\n    unroll<4>([&](auto column) {\n"
            "      sum[row][column] = g(row, column);\n      f(row);\n    });\n  });\n");
  EXPECT_TRUE(calls({unroll("row", integer(6), {fma[1]})}, "unroll"));
  EXPECT_FALSE(calls({fma[1]}, "unroll"));
}

TEST(TreePrint, WritesAFunctionThatCallsALambdaAgainAndAgainWithoutNamesThatNothingReads) {
  Statement s = each("along_row", "65, 4", nullptr, {{"auto", "d"}, {"auto", ""}}, {uses("d"), uses("d")});
  s.always_inline = true;
  EXPECT_EQ(print({s}, 0),
            "along_row<65, 4>([&](auto d, auto) __attribute__((always_inline)) {\n  f(d);\n  f(d);\n});\n");
  EXPECT_TRUE(calls({s}, "along_row"));
  EXPECT_FALSE(calls({s}, "unroll"));
  EXPECT_EQ(print({each("each_image", "", name("batch"), {{"const Team&", "team"}},
                        {each("team.alone", "", nullptr, {}, {uses("i")})})},
                  1),
            "  each_image(batch, [&](const Team& team) { team.alone([&] { f(i); }); });\n");
  const std::string array(90, 'a');
  EXPECT_EQ(print({each("each_widened", "6, 64, 64", name(array), {{"auto", "left"}}, {uses("left")})}, 0),
            "each_widened<6, 64, 64>(" + array + ",\n" + std::string(24, ' ') + "[&](auto left) {\n  f(left);\n});\n");
}

TEST(TreeVariable, AnAxisDoesNotHideWhatIsDeclaredAroundItsLoop) {
  for (const char* const taken :
       {"sum", "row", "tile", "left", "widened", "panel", "depth", "lines", "top", "bottom", "turn", "x1", "n_rest"})
    EXPECT_EQ(variable(taken), taken + std::string("_"));
  EXPECT_EQ(variable("heads"), "heads");
}

TEST(TreePrint, WritesWhatADeclarationIsBehindItOrAboveItWhereTheLineWouldBeTooLong) {
  Statement s = declare("float* const", "x", name("scratch"));
  s.note = "[B, 3], kernels 0 to 1";
  EXPECT_EQ(print({s}, 1), "  float* const x = scratch;  // [B, 3], kernels 0 to 1\n");
  s.name = std::string(80, 'n');
  EXPECT_EQ(print({s}, 1), "  // [B, 3], kernels 0 to 1\n  float* const " + s.name + " = scratch;\n");
}

TEST(TreePrint, WritesALambdaOfAConstantThatIsAlwaysInlinedAndOneThatIsNot) {
  EXPECT_EQ(print({lambda_of_constant("tile", "rows", {{"const std::int64_t", "n"}}, {uses("n"), uses("rows")})}, 0),
            "const auto tile = [&]<int rows>(Constant<rows>, const std::int64_t n) __attribute__((always_inline)) {\n"
            "  f(n);\n  f(rows);\n};\n");
  EXPECT_EQ(print({lambda_not_inlined("epilogue", {{"const real*", "sums"}}, {uses("sums")})}, 0),
            "const auto epilogue = [=](const real* sums) __attribute__((noinline)) { f(sums); };\n");
}

TEST(TreePrint, ChoosesOneOfTwoValuesInParenthesesWhereItIsAnOperand) {
  const Expr chosen = choose(binary("<", name("i"), integer(3)), name("lanes"), integer(5));
  EXPECT_EQ(print(chosen), "i < 3 ? lanes : 5");
  EXPECT_EQ(print(call("f", {chosen + integer(1)})), "f((i < 3 ? lanes : 5) + 1)");
}

TEST(TreeCheck, ConstantsOfLambdasAndVariablesOfUnrolledLoopsAreKnownInsideThemAlone) {
  const Block inside{uses("rows"), unroll("row", name("rows"), {uses("row")})};
  EXPECT_EQ(refusal({lambda_of_constant("tile", "rows", {{"int", "n"}}, inside),
                     evaluate(call("tile", {name("constant<6>"), integer(0)}))}),
            "");
  EXPECT_NE(refusal({lambda_of_constant("tile", "rows", {{"int", "n"}}, inside), uses("rows")}), "");
  EXPECT_NE(refusal({unroll("row", integer(2), {uses("row")}), uses("row")}), "");
  EXPECT_NE(refusal({each("unknown", "3", nullptr, {{"auto", "row"}}, {uses("row")})}), "");
  EXPECT_EQ(refusal({each("f", "3", nullptr, {{"auto", "row"}}, {uses("row")})}), "");
}

TEST(TreeCheck, ALambdasParametersAreKnownInsideItAlone) {
  EXPECT_EQ(refusal({lambda("left", {{"int", "i"}}, {uses("i")}), uses("left")}), "");
  EXPECT_NE(refusal({lambda("left", {{"int", "i"}}, {uses("i")}), uses("i")}), "");
}

}  // namespace
}  // namespace tessera::codegen::tree
