#include "runtime/curve.hpp"

#include <gtest/gtest.h>

#include <set>

#include "runtime/live_view.hpp"
#include "runtime/numbers.hpp"
#include "runtime/suggestion.hpp"
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

TEST(Curve, EveryStepOfAShortRunIsNamedOnce) {
  for (const std::int64_t last : {1, 2, 3, 7}) {
    Curve rows;
    for (std::int64_t i = 1; i <= last; ++i) rows.push_back({i, 1, 2.0, 0.5, {}, {}});
    const std::string panel = loss_panel(rows, "Loss", last);
    std::vector<std::string> names;  // below the axis of steps, 270 high and 46 from the top
    const std::string place = "y=\"336.0\"";
    for (std::size_t at = panel.find(place); at != std::string::npos; at = panel.find(place, at + 1)) {
      const std::size_t begin = panel.find('>', at) + 1;
      names.push_back(panel.substr(begin, panel.find('<', begin) - begin));
    }
    ASSERT_GE(names.size(), 2u) << panel;
    EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size()) << testing::PrintToString(names);
    EXPECT_GE(std::stoll(names.back()), last);
  }
}

/// The characters of UTF-8 that a terminal shows, without its commands.
std::size_t width(const std::string& line) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\033')
      i = line.find('m', i);
    else
      count += (line[i] & 0xc0) != 0x80;
  }
  return count;
}

TEST(LiveView, FitsTheScreenAndDrawsBothCurves) {
  Curve rows;
  for (int i = 1; i <= 40; ++i) rows.push_back({i * 10, i / 20 + 1, 2.0 / i, 1 - 0.9 / i, {}, {}});
  rows[19].test_loss = 0.1, rows[19].test_accuracy = 0.95;
  const Now now{3, 5, 50, 100, 405, 0.05, 0.98, rows};
  for (const int columns : {20, 60, 80, 100, 200})
    for (const int height : {5, 24, 50})
      for (const bool unicode : {false, true}) {
        const std::vector<std::string> shown = live_view(now, 12345, 62, {columns, height, unicode, true});
        EXPECT_LT(shown.size(), static_cast<std::size_t>(height));
        for (const std::string& line : shown) EXPECT_LT(width(line), static_cast<std::size_t>(columns)) << line;
      }
  const std::vector<std::string> shown = live_view(now, 12345, 62, {});
  ASSERT_EQ(shown.size(), 11u);
  EXPECT_EQ(shown[0], "epoch 3/5  [====     ]  loss 0.0500  accuracy 98.0%  12,345 images/s  1:02 left");
  EXPECT_EQ(shown[1], "step 405  \033[36mtraining\033[0m  \033[33mtest loss 0.1000, accuracy 95.00%\033[0m");
  EXPECT_CONTAINS(shown[3], "2.00");  // the loss begins high,
  EXPECT_CONTAINS(shown[3], "100%");
  EXPECT_CONTAINS(shown[10], "0.00");  // and ends low
  EXPECT_EQ(live_view(now, 1, 1, {80, 24, false, true}).size(), 1u);
  EXPECT_EQ(live_view(now, 1, 1, {80, 24, true, false})[3].find('\033'), std::string::npos);
  EXPECT_EQ(live_view({1, 5, 0, 0, 0, 0, 0, {}}, 0, 0, {}).size(), 11u);  // nothing is known yet
}

TEST(Suggestion, IsTheNearestWordOrNone) {
  EXPECT_EQ(edit_distance("tarin", "train"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "ab"), 2u);
  const std::vector<std::string> words{"train", "eval", "predict", "export", "import", "--epochs", "--batch"};
  EXPECT_EQ(nearest("trian", words), "train");
  EXPECT_EQ(nearest("pred", words), "predict");
  EXPECT_EQ(nearest("--epoch", words), "--epochs");
  EXPECT_EQ(nearest("frobnicate", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest(std::string(1000, 'a'), words), "");
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
