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
constexpr double font_size = 13, small_font_size = 12, name_width = cell - 7;
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
  out += svg_text(x, below, beginning(data.called(evaluation.predicted[at]), name_width / font_size / bold_ems),
                  text("font-weight=\"700\" fill=\"", colour, "\""));
  if (!data.names.empty()) below += line;  // a name fills the first
  out += svg_text(x + picture, below, probability(evaluation.confidence[at]), "text-anchor=\"end\"");
  if (!right)
    out += svg_text(x, below + line, beginning("is " + data.called(data.labels[at]), name_width / small_font_size),
                    text("font-size=\"", small_font_size, "\" fill=\"", wrong_colour, "\""));
  return out;
}

double row_height(const Dataset& data) { return data.names.empty() ? 118 : 118 + line; }

/// A heading, and the images that stand below it.
struct Group {
  std::string heading;
  std::vector<std::int64_t> indices;
};

/// The first images and, where there are mistakes, those with the surest answers.
std::vector<Group> groups_of(const Dataset& data, const Evaluation& evaluation) {
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
  std::vector<Group> groups{{text("The first ", first.size(), " of ", grouped(data.size()), " test images"), first}};
  if (!mistakes.empty())
    groups.push_back({text("Of the ", grouped(static_cast<std::int64_t>(wrong)), wrong == 1 ? " mistake" : " mistakes",
                           ", the ", mistakes.size(), " with the surest answer"),
                      mistakes});
  return groups;
}

}  // namespace

std::string predictions_svg(const Dataset& data, const Evaluation& evaluation, const std::string& title) {
  constexpr double head = 50, heading = 40;
  double y = head;
  std::string out;
  for (const Group& group : groups_of(data, evaluation)) {
    out += svg_text(margin, y + heading / 2, group.heading, "");
    y += heading;
    for (std::size_t i = 0; i < group.indices.size(); ++i)
      out += sample(data, evaluation, group.indices[i], margin + cell * static_cast<double>(i % columns),
                    y + row_height(data) * static_cast<double>(i / columns));
    y += row_height(data) * static_cast<double>((group.indices.size() + columns - 1) / columns);
  }
  return svg_begin(2 * margin + cell * columns, y) +
         svg_text(margin, 34, title, "font-size=\"17\" font-weight=\"600\"") + out + "</svg>\n";
}

std::vector<Tiles> prediction_tiles(const Dataset& data, const Evaluation& evaluation) {
  std::vector<Tiles> out;
  for (const Group& group : groups_of(data, evaluation)) {
    Tiles& tiles = out.emplace_back(Tiles{group.heading, {}});
    for (const std::int64_t index : group.indices)
      tiles.pictures.push_back(svg_begin(cell, row_height(data) - 4) + sample(data, evaluation, index, 4, 4) +
                               "</svg>\n");
  }
  return out;
}

}  // namespace tessera::runtime
