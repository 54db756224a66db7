#include <algorithm>
#include <cmath>

#include "runtime/curve.hpp"
#include "runtime/error.hpp"
#include "runtime/numbers.hpp"
#include "runtime/svg.hpp"

namespace tessera::runtime {
namespace {

constexpr const char *train_colour = "#3b6fb6", *test_colour = "#d1603d", *ink = "#333", *faint = "#e4e4e4";

/// Round numbers at an even distance that cover a range.
struct Scale {
  double low, high, step;

  /// Steps of 1, 2 or 5 times a power of ten, none of them below `least`; about `count` of them.
  static Scale covering(double low, double high, int count, double least = 0) {
    if (!(high > low)) high = low + 1;
    const double rough = std::max((high - low) / count, least), power = std::pow(10, std::floor(std::log10(rough)));
    const double step = power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10);
    return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step, step};
  }
  int ticks() const { return static_cast<int>(std::lround((high - low) / step)); }
  double tick(int i) const { return low + i * step; }
};

struct Panel {
  double left, top, width, height;
  Scale across, up;

  std::string x(double value) const {
    return fixed(left + (value - across.low) / (across.high - across.low) * width, 1);
  }
  std::string y(double value) const {
    const double part = std::clamp((value - up.low) / (up.high - up.low), 0.0, 1.0);
    return fixed(top + (1 - part) * height, 1);
  }
};

struct Series {
  std::vector<double> steps, values;
};

std::string line(const Panel& panel, const Series& series, const std::string& style) {
  std::string points;
  for (std::size_t i = 0; i < series.steps.size(); ++i)
    points += text(i ? " " : "", panel.x(series.steps[i]), ',', panel.y(series.values[i]));
  return text("<polyline points=\"", points, "\" fill=\"none\" stroke-linejoin=\"round\" ", style, "/>\n");
}

/// The mean over the neighbours on both sides, as far as they exist: single batches are noisy.
Series smooth(const Series& series) {
  Series result = series;
  const auto count = static_cast<std::int64_t>(series.values.size());
  const std::int64_t reach = std::min<std::int64_t>(2, count / 20);
  for (std::int64_t i = 0; i < count; ++i) {
    // At the steep start as many on the right as there are on the left, so that it is not flattened.
    const std::int64_t before = std::min(reach, i), after = std::min(before, count - 1 - i);
    double sum = 0;
    for (std::int64_t k = i - before; k <= i + after; ++k) sum += series.values[static_cast<std::size_t>(k)];
    result.values[static_cast<std::size_t>(i)] = sum / static_cast<double>(before + after + 1);
  }
  return result;
}

std::string axes(const Panel& panel, const std::string& name, bool percent, std::int64_t epoch_steps) {
  const double right = panel.left + panel.width, bottom = panel.top + panel.height;
  std::string out = svg_text(panel.left, panel.top - 14, name, "font-weight=\"600\"");
  const int digits = percent ? 0 : std::max(0, static_cast<int>(std::ceil(-std::log10(panel.up.step) - 1e-9)));
  for (int i = 0; i <= panel.up.ticks(); ++i) {
    const double value = panel.up.tick(i);
    out += text("<line x1=\"", fixed(panel.left, 1), "\" x2=\"", fixed(right, 1), "\" y1=\"", panel.y(value),
                "\" y2=\"", panel.y(value), "\" stroke=\"", faint, "\"/>\n");
    const std::string label = percent ? fixed(100 * value, panel.up.step < 0.0099 ? 1 : 0) + "%" : fixed(value, digits);
    out += svg_text(panel.left - 8, std::stod(panel.y(value)) + 4, label, "text-anchor=\"end\"");
  }
  // An epoch ends at each dotted line, as long as there is room to tell them apart.
  const double epochs = static_cast<double>(epoch_steps) > 0 ? panel.across.high / static_cast<double>(epoch_steps) : 0;
  if (epochs <= 30)
    for (std::int64_t step = epoch_steps; step > 0 && static_cast<double>(step) <= panel.across.high;
         step += epoch_steps)
      out += text("<line x1=\"", panel.x(static_cast<double>(step)), "\" x2=\"", panel.x(static_cast<double>(step)),
                  "\" y1=\"", fixed(panel.top, 1), "\" y2=\"", fixed(bottom, 1),
                  "\" stroke=\"#bbb\" stroke-dasharray=\"1 4\"/>\n");
  for (int i = 0; i <= panel.across.ticks(); ++i) {
    const double value = panel.across.tick(i);
    out += text("<line x1=\"", panel.x(value), "\" x2=\"", panel.x(value), "\" y1=\"", fixed(bottom, 1), "\" y2=\"",
                fixed(bottom + 5, 1), "\" stroke=\"", ink, "\"/>\n");
    out += svg_text(std::stod(panel.x(value)), bottom + 20, grouped(std::llround(value)), "text-anchor=\"middle\"");
  }
  out += text("<line x1=\"", fixed(panel.left, 1), "\" x2=\"", fixed(right, 1), "\" y1=\"", fixed(bottom, 1),
              "\" y2=\"", fixed(bottom, 1), "\" stroke=\"", ink, "\"/>\n");
  return out + svg_text(panel.left + panel.width / 2, bottom + 40, "training step", "text-anchor=\"middle\"");
}

std::string curves(const Panel& panel, const Series& train, const Series& test) {
  std::string out = line(panel, train, text("stroke=\"", train_colour, "\" stroke-width=\"1\" opacity=\"0.35\""));
  out += line(panel, smooth(train), text("stroke=\"", train_colour, "\" stroke-width=\"2\""));
  out += line(panel, test, text("stroke=\"", test_colour, "\" stroke-width=\"2\""));
  for (std::size_t i = 0; i < test.steps.size(); ++i)
    out += text("<circle cx=\"", panel.x(test.steps[i]), "\" cy=\"", panel.y(test.values[i]), "\" r=\"4\" fill=\"",
                test_colour, "\" stroke=\"#fff\"/>\n");
  return out;
}

std::string legend(double right, double y) {
  const auto entry = [&](double x, const char* colour, const char* name) {
    return text("<line x1=\"", fixed(x, 1), "\" x2=\"", fixed(x + 22, 1), "\" y1=\"", fixed(y - 4, 1), "\" y2=\"",
                fixed(y - 4, 1), "\" stroke=\"", colour, "\" stroke-width=\"3\"/>\n") +
           svg_text(x + 28, y, name, "");
  };
  return entry(right - 150, train_colour, "training") + entry(right - 55, test_colour, "test");
}

}  // namespace

namespace {

/// What both panels show.
struct Curves {
  Series loss, accuracy, test_loss, test_accuracy;
  Scale steps, losses, accuracies;
};

Curves curves_of(std::span<const CurveRow> rows) {
  Series loss, accuracy, test_loss, test_accuracy;
  for (const CurveRow& row : rows) {
    const auto step = static_cast<double>(row.step);
    loss.steps.push_back(step), loss.values.push_back(row.train_loss);
    accuracy.steps.push_back(step), accuracy.values.push_back(row.train_accuracy);
    if (row.test_loss) test_loss.steps.push_back(step), test_loss.values.push_back(*row.test_loss);
    if (row.test_accuracy) test_accuracy.steps.push_back(step), test_accuracy.values.push_back(*row.test_accuracy);
  }
  double low = 0, high = 1, least_accuracy = 1;
  if (!rows.empty()) {
    low = *std::min_element(loss.values.begin(), loss.values.end());
    high = *std::max_element(loss.values.begin(), loss.values.end());
    for (const double value : test_loss.values) low = std::min(low, value), high = std::max(high, value);
    least_accuracy = *std::min_element(accuracy.values.begin(), accuracy.values.end());
  }
  // Zero belongs to the axis where the losses come near it.
  if (low < 0.4 * high) low = 0;
  const Scale steps = Scale::covering(0, rows.empty() ? 1 : static_cast<double>(rows.back().step), 5, 1);
  const Scale losses = Scale::covering(low, high, 6);
  const Scale accuracies = Scale::covering(least_accuracy > 0.85 ? 0.8 : least_accuracy > 0.6 ? 0.5 : 0, 1, 5);

  return {loss, accuracy, test_loss, test_accuracy, steps, losses, accuracies};
}

}  // namespace

std::string curve_svg(std::span<const CurveRow> rows, const std::string& title, std::int64_t epoch_steps) {
  constexpr double width = 1080, height = 440;
  const Curves c = curves_of(rows);
  const Panel left{70, 80, 430, 290, c.steps, c.losses}, right{610, 80, 430, 290, c.steps, c.accuracies};
  return svg_begin(width, height) + svg_text(left.left, 34, title, "font-size=\"17\" font-weight=\"600\"") +
         legend(right.left + right.width, 34) + axes(left, "Loss", false, epoch_steps) +
         curves(left, c.loss, c.test_loss) + axes(right, "Accuracy", true, epoch_steps) +
         curves(right, c.accuracy, c.test_accuracy) + "</svg>\n";
}

namespace {

/// A panel as a picture of its own.
std::string picture_of(const Scale& steps, const Scale& values, const std::string& name, bool percent,
                       std::int64_t epoch_steps, const Series& train, const Series& test) {
  constexpr double width = 500, height = 370;
  const Panel panel{60, 46, 420, 270, steps, values};
  return svg_begin(width, height) + legend(panel.left + panel.width, 32) + axes(panel, name, percent, epoch_steps) +
         curves(panel, train, test) + "</svg>\n";
}

}  // namespace

std::string loss_panel(std::span<const CurveRow> rows, const std::string& name, std::int64_t epoch_steps) {
  const Curves c = curves_of(rows);
  return picture_of(c.steps, c.losses, name, false, epoch_steps, c.loss, c.test_loss);
}

std::vector<std::string> curve_panels(std::span<const CurveRow> rows, std::int64_t epoch_steps) {
  const Curves c = curves_of(rows);
  return {loss_panel(rows, "Loss", epoch_steps),
          picture_of(c.steps, c.accuracies, "Accuracy", true, epoch_steps, c.accuracy, c.test_accuracy)};
}

}  // namespace tessera::runtime
