#include "runtime/predictions.hpp"

#include <algorithm>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/image.hpp"
#include "runtime/numbers.hpp"
#include "runtime/svg.hpp"

namespace tessera::runtime {
namespace {

constexpr int columns = 10;
constexpr double cell = 96, picture = 72, margin = 36, line = 15;
constexpr std::size_t longest_name = 11;
constexpr const char *right_colour = "#2e7d4f", *wrong_colour = "#c0392b";

std::string sample(const Dataset& data, const Evaluation& evaluation, std::int64_t index, double x, double y) {
  const auto at = static_cast<std::size_t>(index);
  const bool right = evaluation.predicted[at] == data.labels[at];
  const char* colour = right ? right_colour : wrong_colour;
  std::string out =
      text("<rect x=\"", fixed(x - 2, 1), "\" y=\"", fixed(y - 2, 1), "\" width=\"", fixed(picture + 4, 1),
           "\" height=\"", fixed(picture + 4, 1), "\" rx=\"3\" fill=\"", right ? "#ddd" : wrong_colour, "\"/>\n") +
      svg_png(x, y, picture, picture, encode_png(data.image(index), data.channels, data.height, data.width));
  double below = y + picture + 17;
  out += svg_text(x, below, shortened(data.called(evaluation.predicted[at]), longest_name),
                  text("font-weight=\"700\" fill=\"", colour, "\""));
  if (!data.names.empty()) below += line;  // a name fills the first
  out += svg_text(x + picture, below, fixed(100 * evaluation.confidence[at], 1) + "%", "text-anchor=\"end\"");
  if (!right)
    out += svg_text(x, below + line, "is " + shortened(data.called(data.labels[at]), longest_name),
                    text("font-size=\"12\" fill=\"", wrong_colour, "\""));
  return out;
}

double row_height(const Dataset& data) { return data.names.empty() ? 118 : 118 + line; }

std::string grid(const Dataset& data, const Evaluation& evaluation, const std::vector<std::int64_t>& indices,
                 double top) {
  std::string out;
  for (std::size_t i = 0; i < indices.size(); ++i)
    out += sample(data, evaluation, indices[i], margin + cell * static_cast<double>(i % columns),
                  top + row_height(data) * static_cast<double>(i / columns));
  return out;
}

}  // namespace

std::string predictions_svg(const Dataset& data, const Evaluation& evaluation, const std::string& title) {
  std::vector<std::int64_t> first, mistakes;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    if (i < 3 * columns) first.push_back(i);
    const auto at = static_cast<std::size_t>(i);
    if (evaluation.predicted[at] != data.labels[at]) mistakes.push_back(i);
  }
  const std::size_t wrong = mistakes.size();
  std::sort(mistakes.begin(), mistakes.end(), [&](std::int64_t a, std::int64_t b) {
    const float sure_a = evaluation.confidence[static_cast<std::size_t>(a)];
    const float sure_b = evaluation.confidence[static_cast<std::size_t>(b)];
    return sure_a != sure_b ? sure_a > sure_b : a < b;
  });
  mistakes.resize(std::min<std::size_t>(wrong, 2 * columns));

  const auto rows = [](std::size_t count) { return static_cast<double>((count + columns - 1) / columns); };
  const double first_top = 90, mistakes_top = first_top + row_height(data) * rows(first.size()) + 40;
  const double height = mistakes.empty() ? mistakes_top - 30 : mistakes_top + row_height(data) * rows(mistakes.size());
  std::string out = svg_begin(2 * margin + cell * columns - (cell - picture), height);
  out += svg_text(margin, 34, title, "font-size=\"17\" font-weight=\"600\"");
  out += svg_text(margin, first_top - 20,
                  text("The first ", first.size(), " of ", grouped(data.size()), " test images"), "");
  out += grid(data, evaluation, first, first_top);
  if (!mistakes.empty()) {
    out += svg_text(margin, mistakes_top - 20,
                    text("Of the ", grouped(static_cast<std::int64_t>(wrong)), wrong == 1 ? " mistake" : " mistakes",
                         ", the ", mistakes.size(), " with the surest answer"),
                    "");
    out += grid(data, evaluation, mistakes, mistakes_top);
  }
  return out + "</svg>\n";
}

}  // namespace tessera::runtime
