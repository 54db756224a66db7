#include "runtime/picture_report.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "runtime/arena.hpp"
#include "runtime/numbers.hpp"
#include "runtime/picture_sheet.hpp"
#include "runtime/svg.hpp"

namespace tessera::runtime {

std::vector<std::string> picture_tiles(std::span<const float> images, const std::int64_t (&shape)[3],
                                       std::span<const float> below) {
  constexpr double width = 56, gap = 3;
  const double height = width * static_cast<double>(shape[1]) / static_cast<double>(shape[2]);
  const auto floats = static_cast<std::size_t>(size_product({shape[0], shape[1], shape[2]}));
  std::vector<std::string> tiles;
  for (std::size_t at = 0; at < images.size(); at += floats) {
    const auto drawn = [&](std::span<const float> of, double top) {
      return svg_png(0, top, width, height, picture_sheet(of.subspan(at, floats), shape, 1, 0));
    };
    tiles.push_back(below.empty() ? svg_begin(width, height) + drawn(images, 0)
                                  : svg_begin(width, 2 * height + gap) + drawn(images, 0) + drawn(below, height + gap));
    tiles.back() += "</svg>\n";
  }
  return tiles;
}

std::string code_usage_svg(std::span<const std::int64_t> counts) {
  constexpr double width = 500, height = 210, left = 60, top = 30, bottom = 170, right = 480;
  std::vector<std::int64_t> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const double all = std::max(1.0, static_cast<double>(std::accumulate(sorted.begin(), sorted.end(), std::int64_t{0})));
  const double most = sorted.empty() ? 1 : std::max(1.0, static_cast<double>(sorted.front()));
  const double codes = std::max(1.0, static_cast<double>(sorted.size()));
  const double even = all / codes, step = (right - left) / codes;
  const auto y = [&](double count) { return bottom - (bottom - top) * count / most; };
  std::string out = svg_begin(width, height) + svg_text(left, top - 12, "Share of all tokens", "font-weight=\"600\"");
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double bar = y(static_cast<double>(sorted[i]));
    out += text("<rect x=\"", fixed(left + step * static_cast<double>(i), 1), "\" y=\"", fixed(bar, 1), "\" width=\"",
                fixed(std::max(0.5, 0.8 * step), 1), "\" height=\"", fixed(bottom - bar, 1), "\" fill=\"#3b6fb6\"/>\n");
  }
  const auto mark = [&](double count, const char* stroke) {
    return text("<line x1=\"", fixed(left, 1), "\" x2=\"", fixed(right, 1), "\" y1=\"", fixed(y(count), 1), "\" y2=\"",
                fixed(y(count), 1), "\" stroke=\"", stroke, "\"/>\n");
  };
  out += mark(0, "#333") + mark(even, "#d1603d");
  out += svg_text(left - 8, y(most) + 4, probability(most / all), "text-anchor=\"end\"");
  out += svg_text(left - 8, bottom + 4, "0%", "text-anchor=\"end\"");
  out += svg_text(right, y(even) - 6, "all codes alike: " + probability(even / all), "text-anchor=\"end\"");
  return out +
         svg_text((left + right) / 2, bottom + 24, "codes, from the most used to the least", "text-anchor=\"middle\"") +
         "</svg>\n";
}

}  // namespace tessera::runtime
