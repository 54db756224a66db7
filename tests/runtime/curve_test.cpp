#include "runtime/curve.hpp"

#include <gtest/gtest.h>

#include "runtime/numbers.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

TEST(Curve, CsvIsReadBackExactly) {
  const Curve rows{{10, 1, rounded(2.0 / 3), rounded(0.1234567), {}, {}}, {20, 1, rounded(1e-9), 1, rounded(0.7), 0.5}};
  EXPECT_EQ(parse_curve_csv(curve_csv(rows), "x"), rows);
  EXPECT_EQ(
      curve_csv(rows),
      "step,epoch,train_loss,train_accuracy,test_loss,test_accuracy\n10,1,0.666667,0.123457,,\n20,1,1e-09,1,0.7,0.5\n");
}

TEST(Curve, DamagedCsvIsRefusedWithItsLine) {
  const std::string names = "step,epoch,train_loss,train_accuracy,test_loss,test_accuracy\n";
  EXPECT_EQ(sentence([&] { parse_curve_csv(names + "1,1,1,1,,\n2,1,x,1,,\n", "run"); }),
            "run: line 3 of the curve is damaged");
  EXPECT_EQ(sentence([&] { parse_curve_csv(names + "1,1,1\n", "run"); }), "run: line 2 of the curve is damaged");
  EXPECT_CONTAINS(sentence([&] { parse_curve_csv("a,b\n", "run"); }), "does not begin with");
}

TEST(Curve, DrawingHoldsBothPanelsAndNoNumberThatIsNone) {
  Curve rows;
  for (int i = 1; i <= 40; ++i) rows.push_back({i * 10, i / 20 + 1, 2.0 / i, 1 - 0.9 / i, {}, {}});
  rows.back().test_loss = 0.1;
  rows.back().test_accuracy = 0.9;
  for (const Curve& curve : {rows, Curve{}, Curve{rows[0]}, Curve(5, rows[3])}) {
    const std::string svg = curve_svg(curve, "a < b & c", 200);
    EXPECT_CONTAINS(svg, "Loss");
    EXPECT_CONTAINS(svg, "Accuracy");
    EXPECT_CONTAINS(svg, "a &lt; b &amp; c");
    EXPECT_CONTAINS(svg, "</svg>");
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
  }
}

TEST(Numbers, AreWrittenForPeople) {
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(duration(7), "0:07");
  EXPECT_EQ(duration(3723), "1:02:03");
  EXPECT_EQ(duration(-1), "0:00");
  EXPECT_EQ(bytes(1023), "1023 bytes");
  EXPECT_EQ(bytes(1536), "1.5 KiB");
  EXPECT_EQ(fixed(0.5, 2), "0.50");
  EXPECT_EQ(padded("ab", 4), "  ab");
  EXPECT_EQ(padded("ab", -4), "ab  ");
}

}  // namespace
}  // namespace tessera::runtime
