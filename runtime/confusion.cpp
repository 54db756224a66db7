#include "runtime/confusion.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "runtime/svg.hpp"

namespace tessera::runtime {
namespace {

/// Blue for what is right, red for what is wrong, over the ground, which may be dark.
std::string shade(double share, bool right) {
  // The square root makes few mistakes visible beside many right answers.
  return text(right ? "rgb(46,98,166)" : "rgb(192,57,43)", "\" fill-opacity=\"", fixed(std::sqrt(share), 3));
}

constexpr double font_size = 13, most_ems = 14;  // of names

}  // namespace

Confusion confusion(const Dataset& data, const Evaluation& evaluation) {
  std::int64_t classes = data.classes;
  for (const std::int32_t answer : evaluation.predicted) classes = std::max<std::int64_t>(classes, answer + 1);
  Confusion result{classes, std::vector<std::int64_t>(static_cast<std::size_t>(classes * classes)), {}};
  for (std::int64_t c = 0; c < classes; ++c) result.names.push_back(data.called(c));
  for (std::size_t i = 0; i < data.labels.size(); ++i)
    ++result.counts[static_cast<std::size_t>(data.labels[i] * classes + evaluation.predicted[i])];
  return result;
}

std::string confusion_svg(const Confusion& confusion, const std::string& title) {
  std::vector<std::string> names;
  double longest = 0;
  for (const std::string& name : confusion.names) {
    names.push_back(beginning(name, most_ems));
    longest = std::max(longest, ems(names.back()));
  }
  // Names of more than two letters stand at a slant above their columns.
  const double room = font_size * longest, rise = longest > 2 ? 0.7 * room : 0;
  const double left = 76 + room, top = (title.empty() ? 53 : 103) + rise, margin = 30;
  const std::int64_t n = confusion.classes;
  const bool numbers = n <= 24;
  const double cell = numbers ? 46 : std::max(1.0, std::floor(900 / static_cast<double>(n)));
  const double side = cell * static_cast<double>(n);
  const std::int64_t every = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(26 / cell)));
  std::string out = svg_begin(std::max(left + side + margin + rise, 460.0), top + side + margin);
  if (!title.empty()) out += svg_text(24, 34, title, "font-size=\"17\" font-weight=\"600\"");
  out += svg_text(left + side / 2, top - 30 - rise, "answer", "text-anchor=\"middle\"");
  out += svg_text(24, top + side / 2, "truth", "");
  for (std::int64_t i = 0; i < n; ++i) {
    const double at = cell * static_cast<double>(i);
    if (i % every == 0) {
      const std::string& name = names[static_cast<std::size_t>(i)];
      const double x = left + at + cell / 2, y = top - 10;
      out += svg_text(left - 10, top + at + cell / 2 + 4, name, "text-anchor=\"end\"");
      out += svg_text(
          x, y, name,
          rise == 0 ? "text-anchor=\"middle\"" : text("transform=\"rotate(-45 ", fixed(x, 1), " ", fixed(y, 1), ")\""));
    }
    std::int64_t row = 0;
    for (std::int64_t j = 0; j < n; ++j) row += confusion.at(i, j);
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t count = confusion.at(i, j);
      if (count == 0) continue;
      const double share = static_cast<double>(count) / static_cast<double>(row),
                   x = left + cell * static_cast<double>(j);
      out += text("<rect x=\"", fixed(x, 1), "\" y=\"", fixed(top + at, 1), "\" width=\"", fixed(cell, 1),
                  "\" height=\"", fixed(cell, 1), "\" fill=\"", shade(share, i == j), "\"/>\n");
      if (numbers)
        // By their classes a phone's page shows the counts alone, and larger.
        for (const auto& [name, content, below, size] :
             {std::tuple{"count", grouped(count), -1.0, 12}, {"share", probability(share), 13.0, 10}})
          out += svg_text(x + cell / 2, top + at + cell / 2 + below, content,
                          text("class=\"", name, "\" text-anchor=\"middle\" font-size=\"", size, "\" fill=\"",
                               share > 0.3 ? "#fff" : "#333", "\""));
    }
  }
  return out + text("<rect x=\"", fixed(left, 1), "\" y=\"", fixed(top, 1), "\" width=\"", fixed(side, 1),
                    "\" height=\"", fixed(side, 1), "\" fill=\"none\" stroke=\"#999\"/>\n</svg>\n");
}

}  // namespace tessera::runtime
