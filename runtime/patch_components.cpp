#include "runtime/patch_components.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/clusters.hpp"
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

/// Of all pictures, [pictures, patches, width].
std::vector<float> patches_of(const std::vector<std::vector<float>>& tokens, std::int64_t width, const Grid& grid) {
  std::vector<float> all;
  for (const std::vector<float>& of : tokens) {
    check_finite(of, "the features of patches");
    all.insert(all.end(), of.end() - static_cast<std::ptrdiff_t>(grid.rows * grid.columns * width), of.end());
  }
  return all;
}

}  // namespace

std::vector<PatchColours> cluster_colours(const std::vector<std::vector<float>>& tokens, std::int64_t width,
                                          const Grid& grid, std::int64_t clusters) {
  constexpr std::array<std::array<std::uint8_t, 3>, std::size_t{most_clusters}> palette{{{0, 114, 178},
                                                                                         {230, 159, 0},
                                                                                         {0, 158, 115},
                                                                                         {204, 121, 167},
                                                                                         {86, 180, 233},
                                                                                         {213, 94, 0},
                                                                                         {240, 228, 66},
                                                                                         {0, 0, 0}}};
  const std::vector<std::int32_t> of = k_means(patches_of(tokens, width, grid), width, clusters);
  const std::size_t patches = tokens.empty() ? 0 : of.size() / tokens.size();
  std::vector<PatchColours> result(tokens.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    const auto& colour = palette.at(static_cast<std::size_t>(of[i]));
    std::vector<std::uint8_t>& colours = result[i / patches].colours;
    colours.insert(colours.end(), colour.begin(), colour.end());
  }
  return result;
}

std::vector<PatchColours> patch_colours(const std::vector<std::vector<float>>& tokens, std::int64_t width,
                                        const Grid& grid) {
  const auto patches = static_cast<std::size_t>(grid.rows * grid.columns), d = static_cast<std::size_t>(width);
  const std::vector<float> all = patches_of(tokens, width, grid);
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

Bytes components_png(const std::vector<Image>& pictures, const std::vector<PatchDrawing>& drawings, const Grid& grid) {
  const Image first = enlarged(pictures.front());
  const std::int64_t height = first.height, width = first.width, count = std::ssize(pictures);
  const std::int64_t columns = 1 + std::ssize(drawings);
  Image panel{3, count * (height + panel_gap) + panel_gap, columns * (width + panel_gap) + panel_gap, {}};
  panel.pixels.assign(static_cast<std::size_t>(3 * panel.height * panel.width), 255);
  for (std::int64_t i = 0; i < columns * count; ++i) {
    const auto at = static_cast<std::size_t>(i / columns), column = static_cast<std::size_t>(i % columns);
    const Image shown = column ? drawn(drawings[column - 1].colours[at], grid, height, width) : enlarged(pictures[at]);
    for (std::int64_t line = 0; line < 3 * height; ++line) {
      const std::int64_t c = line / height, y = line % height;
      const auto from = shown.pixels.begin() + line * width;
      std::copy(from, from + width,
                panel.pixels.begin() +
                    (c * panel.height + panel_gap + i / columns * (height + panel_gap) + y) * panel.width + panel_gap +
                    i % columns * (width + panel_gap));
    }
  }
  return encode_png(panel.pixels, 3, panel.height, panel.width);
}

std::string components_svg(const std::vector<Image>& pictures, const std::vector<PatchDrawing>& drawings,
                           const Grid& grid, const std::string& title) {
  constexpr double margin = 24, head = 86, foot = 76;
  const Image first = enlarged(pictures.front());
  const auto height = static_cast<double>(first.height), width = static_cast<double>(first.width);
  const auto count = static_cast<double>(pictures.size()), columns = static_cast<double>(1 + drawings.size());
  const double room = columns * (width + panel_gap) - panel_gap;
  std::string out =
      svg_begin(2 * margin + room, head + count * (height + panel_gap) + foot) +
      svg_text(margin, 34, beginning(title, room / 17 / bold_ems), "font-size=\"17\" font-weight=\"600\"") +
      svg_text(margin, head - 14, "what the model reads", "");
  const auto left = [&](std::size_t drawing) {
    return margin + static_cast<double>(1 + drawing) * (width + panel_gap);
  };
  for (std::size_t k = 0; k < drawings.size(); ++k) out += svg_text(left(k), head - 14, drawings[k].title, "");
  double y = head;
  for (std::size_t i = 0; i < pictures.size(); ++i, y += height + panel_gap) {
    const Image read = enlarged(pictures[i]);
    out += svg_png(margin, y, width, height, encode_png(read.pixels, 3, read.height, read.width));
    for (std::size_t k = 0; k < drawings.size(); ++k) {
      const Image own = drawn(drawings[k].colours[i], grid, read.height, read.width);
      out += svg_png(left(k), y, width, height, encode_png(own.pixels, 3, own.height, own.width));
    }
  }
  const char* lines[] = {"components: the first three of patches are red, green and blue",
                         "black: background, by the first component of all patches",
                         "clusters: a colour each, of the patches of all pictures"};
  for (const char* line : lines) out += svg_text(margin, y += 16, line, "font-size=\"12\"");
  return out + "</svg>\n";
}

}  // namespace tessera::runtime
