#include "runtime/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/divergence.hpp"
#include "runtime/error.hpp"
#include "runtime/inference.hpp"
#include "runtime/svg.hpp"

namespace tessera::runtime {
namespace {

constexpr std::int64_t gap = 12;

/// Of 0 to 1: the colours of matplotlib's "inferno", whose brightness grows evenly.
std::array<double, 3> heat(double value) {
  constexpr std::array<std::array<double, 3>, 8> colours{{{0, 0, 4},
                                                          {40, 11, 84},
                                                          {101, 21, 110},
                                                          {159, 42, 99},
                                                          {212, 72, 66},
                                                          {245, 125, 21},
                                                          {250, 193, 39},
                                                          {252, 255, 164}}};
  const double place = std::clamp(value, 0.0, 1.0) * (colours.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(place), colours.size() - 2);
  std::array<double, 3> mixed{};
  for (std::size_t c = 0; c < 3; ++c)
    mixed[c] = std::lerp(colours[below][c], colours[below + 1][c], place - static_cast<double>(below));
  return mixed;
}

/// The map at a place of the picture, both as parts of the height and the width, between the middles of the patches.
double between(const PatchMap& map, const Grid& grid, double down, double across) {
  const double y = std::clamp(down * static_cast<double>(grid.rows) - 0.5, 0.0, static_cast<double>(grid.rows - 1));
  const double x =
      std::clamp(across * static_cast<double>(grid.columns) - 0.5, 0.0, static_cast<double>(grid.columns - 1));
  const auto top = static_cast<std::int64_t>(y), left = static_cast<std::int64_t>(x);
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return map.weights[static_cast<std::size_t>(std::min(row, grid.rows - 1) * grid.columns +
                                                std::min(column, grid.columns - 1))];
  };
  const double aside = x - static_cast<double>(left);
  return std::lerp(std::lerp(at(top, left), at(top, left + 1), aside),
                   std::lerp(at(top + 1, left), at(top + 1, left + 1), aside), y - static_cast<double>(top));
}

/// The weight below which a part of them lies, between two by linear interpolation.
double percentile(std::vector<double> weights, double part) {
  std::sort(weights.begin(), weights.end());
  const double place = part * static_cast<double>(weights.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  return std::lerp(weights[below], weights[std::min(below + 1, weights.size() - 1)],
                   place - static_cast<double>(below));
}

/// The weights that are dark and bright. Not the least and the largest: some models store things in a few patches,
/// often in the corners (Darcet et al. 2024), beside which all others would be dark.
std::pair<double, double> colour_range(const PatchMap& map) {
  return {percentile(map.weights, 0.02), percentile(map.weights, 0.98)};
}

/// The photo, without its colours, below a map.
Image covered(const Image& photo, const PatchMap& map, const Grid& grid) {
  const auto [low, high] = colour_range(map);
  PatchMap shown = map;
  for (double& weight : shown.weights) weight = std::clamp((weight - low) / (high > low ? high - low : 1), 0.0, 1.0);
  Image result = photo;
  const std::int64_t area = photo.height * photo.width;
  for (std::int64_t i = 0; i < area; ++i) {
    const double down = (static_cast<double>(i / photo.width) + 0.5) / static_cast<double>(photo.height);
    const double across = (static_cast<double>(i % photo.width) + 0.5) / static_cast<double>(photo.width);
    const std::array<double, 3> colour = heat(between(shown, grid, down, across));
    const auto pixel = [&](std::int64_t c) { return static_cast<std::size_t>(c * area + i); };
    const double grey =
        0.299 * photo.pixels[pixel(0)] + 0.587 * photo.pixels[pixel(1)] + 0.114 * photo.pixels[pixel(2)];
    for (std::int64_t c = 0; c < 3; ++c)
      result.pixels[pixel(c)] =
          static_cast<std::uint8_t>(std::lround(0.4 * grey + 0.6 * colour[static_cast<std::size_t>(c)]));
  }
  return result;
}

/// "0.43%"
std::string shortest_percent(double share) { return fixed(100 * share, share < 0.1 ? 2 : 1) + "%"; }

/// The photo and the covered photos.
std::vector<Image> cells(const Image& photo, const std::vector<PatchMap>& maps, const Grid& grid) {
  std::vector<Image> result{enlarged(photo)};
  for (const PatchMap& map : maps) result.push_back(covered(result[0], map, grid));
  return result;
}

/// Cells side by side; many of them stand in several rows of about the same length.
std::int64_t cells_across(std::size_t count) {
  constexpr std::int64_t most = 7;
  const auto cells = static_cast<std::int64_t>(count), lines = (cells + most - 1) / most;
  return (cells + lines - 1) / lines;
}

bool has_class_token(const Model& model) {
  return std::any_of(model.parameters.begin(), model.parameters.end(), [](const tessera_parameter& row) {
    return std::strstr(row.name, "cls_token") || std::strstr(row.name, "class_token");
  });
}

}  // namespace

std::vector<double> rollout(std::span<const float> maps, std::int64_t layers, std::int64_t heads, std::int64_t tokens) {
  const auto n = static_cast<std::size_t>(tokens), area = n * n;
  std::vector<double> rolled(area);
  for (std::size_t i = 0; i < n; ++i) rolled[i * n + i] = 1;
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(layers); ++layer) {
    std::vector<double> step(area), next(area);
    for (std::size_t head = 0; head < static_cast<std::size_t>(heads); ++head)
      for (std::size_t i = 0; i < area; ++i)
        step[i] += 0.5 * maps[(layer * static_cast<std::size_t>(heads) + head) * area + i] / static_cast<double>(heads);
    for (std::size_t i = 0; i < n; ++i) step[i * n + i] += 0.5;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t j = 0; j < n; ++j) next[i * n + j] += step[i * n + k] * rolled[k * n + j];
    rolled = std::move(next);
  }
  return rolled;
}

std::vector<PatchMap> attention(const Model& model, const float* parameters, const float* input, const Gpu* gpu) {
  const AttentionMaps& maps = model.attention;
  if (maps.layers == 0) fail(model.name, " has no attention maps");
  const std::int64_t front = maps.rows - model.patches.rows * model.patches.columns;
  if (maps.rows != maps.columns || model.patches == Grid{} || front < 0)
    fail(model.name, " has attention maps of ", maps.rows, "x", maps.columns, ", and its pictures have ",
         model.patches.rows, "x", model.patches.columns, " patches: they cannot be laid over one");
  const std::int64_t tokens = maps.rows, area = tokens * tokens;
  const Inference inference(model, parameters, 1, gpu);
  const Inspection seen_inside = inference.inspect(input);
  const std::span<const float> all(seen_inside.maps);
  if (!finite(all.data(), maps.floats()))
    fail("the attention of ", model.name, " is not a number: these parameters cannot be used");

  const bool class_token = front > 0 && has_class_token(model);
  const auto seen = [&](const std::string& title, const auto& map) {
    PatchMap result{title, {}};
    const std::int64_t queries = class_token ? 1 : tokens;
    for (std::int64_t patch = front; patch < tokens; ++patch) {
      double sum = 0;
      for (std::int64_t query = 0; query < queries; ++query)
        sum += map[static_cast<std::size_t>(query * tokens + patch)];
      result.weights.push_back(sum / static_cast<double>(queries));
    }
    return result;
  };
  std::vector<PatchMap> result{seen(text("rolled out over ", maps.layers, maps.layers == 1 ? " block" : " blocks"),
                                    rollout(all, maps.layers, maps.heads, tokens))};
  for (std::int64_t head = 0; head < maps.heads; ++head)
    result.push_back(seen(text("block ", maps.layers, ", head ", head + 1),
                          all.subspan(static_cast<std::size_t>(((maps.layers - 1) * maps.heads + head) * area))));
  const Embedding& embedding = model.embedding;
  const std::int64_t skipped = embedding.keys - (tokens - front);  // before the patches, where the query sees them
  if (embedding.heads == 0 || (skipped != 0 && skipped != front)) return result;
  Inference::Embedded embedded;
  inference.embed(input, 1, embedded);
  if (!finite(embedded.pooling.data(), embedding.pooling_floats()))
    fail("the attention of ", model.name, " is not a number: these parameters cannot be used");
  for (std::int64_t head = 0; head < embedding.heads; ++head) {
    const auto first = embedded.pooling.begin() + head * embedding.keys;
    result.push_back({text("pooling, head ", head + 1), {first + skipped, first + embedding.keys}});
  }
  return result;
}

Bytes attention_png(const Image& photo, const std::vector<PatchMap>& maps, const Grid& grid) {
  const std::vector<Image> shown = cells(photo, maps, grid);
  const auto count = static_cast<std::int64_t>(shown.size());
  const std::int64_t height = shown[0].height, width = shown[0].width, across = cells_across(shown.size());
  Image panel{3, (count + across - 1) / across * (height + gap) + gap, across * (width + gap) + gap, {}};
  panel.pixels.assign(static_cast<std::size_t>(3 * panel.height * panel.width), 255);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t line = 0; line < 3 * height; ++line) {
      const std::int64_t c = line / height, y = line % height;
      const auto from = shown[static_cast<std::size_t>(i)].pixels.begin() + line * width;
      std::copy(from, from + width,
                panel.pixels.begin() + (c * panel.height + gap + i / across * (height + gap) + y) * panel.width + gap +
                    i % across * (width + gap));
    }
  return encode_png(panel.pixels, 3, panel.height, panel.width);
}

std::string attention_svg(const Image& photo, const std::vector<PatchMap>& maps, const Grid& grid,
                          const std::string& title, const std::string& answer) {
  constexpr double margin = 24, label = 44, head = 86, foot = 52, scale = 240;
  const std::vector<Image> shown = cells(photo, maps, grid);
  const auto height = static_cast<double>(shown[0].height), width = static_cast<double>(shown[0].width);
  const auto across = static_cast<std::size_t>(cells_across(shown.size())), down = (shown.size() + across - 1) / across;
  const double room = static_cast<double>(across) * (width + gap) - gap;
  std::string out = svg_begin(2 * margin + room, head + static_cast<double>(down) * (height + label + gap) + foot);
  out += svg_text(margin, 34, beginning(title, room / 17 / bold_ems), "font-size=\"17\" font-weight=\"600\"");
  out += svg_text(margin, 60, beginning("answer: " + answer, room / 15), "font-size=\"15\"");
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const double x = margin + static_cast<double>(i % across) * (width + gap);
    const double y = head + static_cast<double>(i / across) * (height + label + gap);
    out += svg_png(x, y, width, height, encode_png(shown[i].pixels, 3, shown[i].height, shown[i].width));
    out += svg_text(x, y + height + 18, i == 0 ? "what the model reads" : maps[i - 1].title, "");
    if (i == 0) continue;
    const auto [low, high] = colour_range(maps[i - 1]);
    out +=
        svg_text(x, y + height + 35, text(shortest_percent(low), " to ", shortest_percent(high)), "font-size=\"12\"");
  }
  const double bottom = head + static_cast<double>(down) * (height + label + gap) + 8;
  constexpr int steps = 48;
  for (int i = 0; i < steps; ++i) {
    const std::array<double, 3> colour = heat(static_cast<double>(i) / (steps - 1));
    out += text("<rect x=\"", fixed(margin + scale * i / steps, 1), "\" y=\"", fixed(bottom, 1), "\" width=\"",
                fixed(scale / steps + 0.5, 1), "\" height=\"12\" fill=\"rgb(", std::lround(colour[0]), ",",
                std::lround(colour[1]), ",", std::lround(colour[2]), ")\"/>\n");
  }
  out +=
      svg_text(margin, bottom + 28, "share of the attention that a patch gets, from each map's 2nd to 98th percentile",
               "font-size=\"12\"");
  return out + "</svg>\n";
}

}  // namespace tessera::runtime
