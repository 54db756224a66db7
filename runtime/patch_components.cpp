#include "runtime/patch_components.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/error.hpp"
#include "runtime/features.hpp"
#include "runtime/principal_components.hpp"
#include "runtime/svg.hpp"

namespace tessera::runtime {
namespace {

constexpr std::int64_t panel_gap = 12;

/// As large as the picture, a patch one colour.
Image drawn(const PatchColours& of, const Grid& grid, std::int64_t height, std::int64_t width) {
  Image image{3, height, width, {}};
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x)
        image.pixels.push_back(of.colours[static_cast<std::size_t>(
            3 * (y * grid.rows / height * grid.columns + x * grid.columns / width) + c)]);
  return image;
}

}  // namespace

std::vector<PatchColours> patch_colours(const std::vector<std::vector<float>>& tokens, std::int64_t width,
                                        const Grid& grid) {
  const auto patches = static_cast<std::size_t>(grid.rows * grid.columns), d = static_cast<std::size_t>(width);
  std::vector<float> all;  // [pictures, patches, width]
  for (const std::vector<float>& of : tokens) {
    check_finite(of, "the features of patches");
    all.insert(all.end(), of.end() - static_cast<std::ptrdiff_t>(patches * d), of.end());
  }
  const std::size_t count = all.size() / d;
  const auto row = [&](std::size_t i) { return std::span<const float>(all).subspan(i * d, d); };
  const PrincipalComponents first = principal_components(all, width, 1);
  if (first.directions.empty()) fail("the features of all patches are alike: there is nothing to tell apart");
  std::vector<double> place(count);
  double border = 0, inside = 0, at_border = 0, at_inside = 0;
  for (std::size_t i = 0; i < count; ++i) {
    place[i] = first.along(0, row(i));
    const auto patch = static_cast<std::int64_t>(i % patches);
    const std::int64_t y = patch / grid.columns, x = patch % grid.columns;
    const bool outer = y == 0 || x == 0 || y == grid.rows - 1 || x == grid.columns - 1;
    (outer ? border : inside) += place[i];
    (outer ? at_border : at_inside) += 1;
  }
  const double sign = at_inside > 0 && border / at_border > inside / at_inside ? -1 : 1;
  std::vector<float> foreground;
  for (std::size_t i = 0; i < count; ++i)
    if (sign * place[i] > 0) foreground.insert(foreground.end(), row(i).begin(), row(i).end());
  const PrincipalComponents colours = principal_components(foreground, width, 3);
  std::vector<PatchColours> result(tokens.size(), {std::vector<std::uint8_t>(3 * patches, 0)});
  for (std::size_t c = 0; c < colours.directions.size(); ++c) {
    double low = INFINITY, high = -INFINITY;
    for (std::size_t i = 0; i < count; ++i)
      if (sign * place[i] > 0) {
        const double value = colours.along(c, row(i));
        low = std::min(low, value);
        high = std::max(high, value);
      }
    for (std::size_t i = 0; i < count; ++i)
      if (sign * place[i] > 0)
        result[i / patches].colours[3 * (i % patches) + c] = static_cast<std::uint8_t>(
            std::lround(255 * std::clamp((colours.along(c, row(i)) - low) / (high > low ? high - low : 1), 0.0, 1.0)));
  }
  return result;
}

Bytes components_png(const std::vector<Image>& pictures, const std::vector<PatchColours>& colours, const Grid& grid) {
  const Image first = enlarged(pictures.front());
  const std::int64_t height = first.height, width = first.width, count = std::ssize(pictures);
  Image panel{3, count * (height + panel_gap) + panel_gap, 2 * (width + panel_gap) + panel_gap, {}};
  panel.pixels.assign(static_cast<std::size_t>(3 * panel.height * panel.width), 255);
  for (std::int64_t i = 0; i < 2 * count; ++i) {
    const auto at = static_cast<std::size_t>(i / 2);
    const Image shown = i % 2 ? drawn(colours[at], grid, height, width) : enlarged(pictures[at]);
    for (std::int64_t line = 0; line < 3 * height; ++line) {
      const std::int64_t c = line / height, y = line % height;
      const auto from = shown.pixels.begin() + line * width;
      std::copy(from, from + width,
                panel.pixels.begin() + (c * panel.height + panel_gap + i / 2 * (height + panel_gap) + y) * panel.width +
                    panel_gap + i % 2 * (width + panel_gap));
    }
  }
  return encode_png(panel.pixels, 3, panel.height, panel.width);
}

std::string components_svg(const std::vector<Image>& pictures, const std::vector<PatchColours>& colours,
                           const Grid& grid, const std::string& title) {
  constexpr double margin = 24, head = 86, foot = 60;
  const Image first = enlarged(pictures.front());
  const auto height = static_cast<double>(first.height), width = static_cast<double>(first.width);
  const auto count = static_cast<double>(pictures.size());
  std::string out =
      svg_begin(2 * margin + 2 * (width + panel_gap) - panel_gap, head + count * (height + panel_gap) + foot) +
      svg_text(margin, 34, title, "font-size=\"17\" font-weight=\"600\"") +
      svg_text(margin, head - 14, "what the model reads", "") +
      svg_text(margin + width + panel_gap, head - 14, "its patches", "");
  double y = head;
  for (std::size_t i = 0; i < pictures.size(); ++i, y += height + panel_gap) {
    const Image read = enlarged(pictures[i]), own = drawn(colours[i], grid, read.height, read.width);
    out += svg_png(margin, y, width, height, encode_png(read.pixels, 3, read.height, read.width));
    out += svg_png(margin + width + panel_gap, y, width, height, encode_png(own.pixels, 3, own.height, own.width));
  }
  out +=
      svg_text(margin, y + 16, "red, green, blue: the first three principal components of patches", "font-size=\"12\"");
  out += svg_text(margin, y + 32, "black: background, by the first component of all patches", "font-size=\"12\"");
  return out + "</svg>\n";
}

}  // namespace tessera::runtime
