#include "runtime/live_view.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "runtime/error.hpp"
#include "runtime/numbers.hpp"

namespace tessera::runtime {
namespace {

constexpr const char *train_colour = "\033[36m", *test_colour = "\033[33m", *plain = "\033[0m";

/// Dots in characters of 2 x 4 (Unicode's Braille patterns), of two series: a character has the colour of the one drawn
/// last.
class Plot {
 public:
  Plot(int columns, int rows) : columns_(columns), rows_(rows), cells_(static_cast<std::size_t>(columns * rows)) {}

  /// Coordinates in [0, 1] from the lower left.
  void dot(double x, double y, bool test) {
    const int across = place(x, 2 * columns_), down = 4 * rows_ - 1 - place(y, 4 * rows_);
    constexpr int bits[4][2]{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    Cell& cell = cells_[static_cast<std::size_t>(down / 4 * columns_ + across / 2)];
    cell.dots |= bits[down % 4][across % 2];
    cell.test = cell.test || test;
  }
  /// From dot to dot.
  void line(double x0, double y0, double x1, double y1, bool test) {
    const int steps = 1 + static_cast<int>(std::max(std::abs(x1 - x0) * 2 * columns_, std::abs(y1 - y0) * 4 * rows_));
    for (int i = 0; i <= steps; ++i) {
      const double part = static_cast<double>(i) / steps;
      dot(std::lerp(x0, x1, part), std::lerp(y0, y1, part), test);
    }
  }
  std::string row(int number, bool colours) const {
    std::string out;
    const char* colour = nullptr;
    for (int c = 0; c < columns_; ++c) {
      const Cell& cell = cells_[static_cast<std::size_t>(number * columns_ + c)];
      if (cell.dots == 0) {
        out += ' ';
        continue;
      }
      const char* const wanted = cell.test ? test_colour : train_colour;
      if (colours && colour != wanted) out += colour = wanted;
      out += {static_cast<char>(0xe2), static_cast<char>(0xa0 | cell.dots >> 6),
              static_cast<char>(0x80 | (cell.dots & 0x3f))};
    }
    return colour ? out + plain : out;
  }

 private:
  struct Cell {
    int dots = 0;
    bool test = false;
  };
  static int place(double value, int count) {
    return std::clamp(static_cast<int>(std::clamp(value, 0.0, 1.0) * count), 0, count - 1);
  }

  int columns_, rows_;
  std::vector<Cell> cells_;
};

struct Point {
  double step, value;
};

/// A title, and below it a plot with the ends of its scale in front.
std::vector<std::string> panel(const std::string& title, const std::vector<Point>& train,
                               const std::vector<Point>& test, bool percent, int columns, int rows, bool colours) {
  constexpr int label = 7;
  double low = percent ? 1 : 0, high = percent ? 1 : 0, last = 1;
  for (const std::vector<Point>* series : {&train, &test})
    for (const Point& p : *series) {
      if (percent) low = std::min(low, p.value);
      if (!percent && std::isfinite(p.value)) high = std::max(high, p.value);
      last = std::max(last, p.step);
    }
  if (percent) low = std::floor(10 * std::min(low, 0.9)) / 10;
  if (!(high > low)) high = low + 1;
  Plot plot(columns - label - 1, rows);
  const auto draw = [&](const std::vector<Point>& series, bool is_test) {
    const auto y = [&](std::size_t i) { return (series[i].value - low) / (high - low); };
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (!std::isfinite(series[i].value)) continue;
      const std::size_t from = i > 0 && std::isfinite(series[i - 1].value) ? i - 1 : i;
      plot.line(series[from].step / last, y(from), series[i].step / last, y(i), is_test);
    }
  };
  draw(train, false);
  draw(test, true);
  const auto number = [&](double value) { return percent ? fixed(100 * value, 0) + "%" : fixed(value, 2); };
  std::vector<std::string> out{padded(std::string(label + 1, ' ') + title, -columns)};
  for (int r = 0; r < rows; ++r)
    out.push_back(padded(r == 0 ? number(high) : r == rows - 1 ? number(low) : "", label) + ' ' + plot.row(r, colours));
  return out;
}

}  // namespace

Screen this_screen() {
  Screen screen;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    screen.columns = size.ws_col;
    screen.rows = size.ws_row;
  }
  std::string_view locale;
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* const value = std::getenv(name); locale.empty() && value) locale = value;
  const auto says = [&](std::string_view word) { return locale.find(word) != std::string_view::npos; };
  screen.unicode = says("UTF-8") || says("utf8") || says("UTF8") || says("utf-8");
  screen.colours = !std::getenv("NO_COLOR");
  return screen;
}

std::string accuracy_text(const Now& now) {
  return now.accuracy ? text("accuracy ", fixed(100 * *now.accuracy, 1), "%  ") : "";
}

std::string bar(const Now& now, double rate, double left, int columns) {
  const std::string where = text("epoch ", now.epoch, "/", now.epochs);
  const std::string numbers = text("loss ", fixed(now.loss, 4), "  ", accuracy_text(now),
                                   grouped(static_cast<std::int64_t>(rate)), " images/s  ", duration(left), " left");
  const int width = std::min(30, columns - static_cast<int>(where.size() + numbers.size()) - 6);
  std::string drawn;
  if (width >= 5) {
    const auto full = static_cast<std::size_t>(now.images ? width * now.seen / now.images : width);
    drawn = text('[', std::string(full, '='), std::string(static_cast<std::size_t>(width) - full, ' '), "]  ");
  }
  return text(where, "  ", drawn, numbers).substr(0, static_cast<std::size_t>(std::max(columns, 1)));
}

std::vector<std::string> live_view(const Now& now, double rate, double left, const Screen& screen) {
  constexpr int plot_rows = 8, least_columns = 60, narrow_panel = 76;
  const int columns = screen.columns - 1;  // the last one would begin another line on some terminals
  std::vector<std::string> out{bar(now, rate, left, columns)};
  if (!screen.unicode || screen.columns < least_columns || screen.rows < plot_rows + 5) return out;

  std::vector<Point> loss, accuracy, test_loss, test_accuracy;
  for (const CurveRow& row : now.curve) {
    const auto step = static_cast<double>(row.step);
    loss.push_back({step, row.train_loss});
    accuracy.push_back({step, row.train_accuracy});
    if (row.test_loss) test_loss.push_back({step, *row.test_loss});
    if (row.test_accuracy) test_accuracy.push_back({step, *row.test_accuracy});
  }
  if (now.step > 0 && (now.curve.empty() || now.step > now.curve.back().step)) {
    loss.push_back({static_cast<double>(now.step), now.loss});
    accuracy.push_back({static_cast<double>(now.step), now.accuracy.value_or(0)});
  }
  const auto coloured = [&](const char* colour, const std::string& word) {
    return screen.colours ? colour + word + plain : word;
  };
  std::string tested = test_accuracy.empty() ? "no test yet"
                                             : text("test loss ", fixed(test_loss.back().value, 4), ", accuracy ",
                                                    fixed(100 * test_accuracy.back().value, 2), "%");
  out.push_back(
      text("step ", grouped(now.step), "  ", coloured(train_colour, "training"), "  ", coloured(test_colour, tested)));
  const bool both = columns >= narrow_panel;
  const int width = both ? (columns - 2) / 2 : columns;
  const std::vector<std::string> of_accuracy =
      panel("accuracy", accuracy, test_accuracy, true, width, plot_rows, screen.colours);
  if (!both) {
    out.insert(out.end(), of_accuracy.begin(), of_accuracy.end());
    return out;
  }
  const std::vector<std::string> of_loss = panel("loss", loss, test_loss, false, width, plot_rows, screen.colours);
  for (std::size_t i = 0; i < of_loss.size(); ++i) {
    // Every row of a plot is as wide as its panel: what stands beside it begins in one column.
    out.push_back(of_loss[i] + "  " + of_accuracy[i]);
  }
  return out;
}

}  // namespace tessera::runtime
