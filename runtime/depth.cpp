#include "runtime/depth.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "runtime/arena.hpp"
#include "runtime/error.hpp"
#include "runtime/features.hpp"
#include "runtime/numbers.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/progress.hpp"
#include "runtime/svg.hpp"

namespace tessera::runtime {
namespace {

/// How near a depth is in its map, from 0 to 1; 1 where all are alike.
float nearness(float depth, const std::pair<float, float>& range, Depth kind) {
  const auto [least, most] = range;
  if (most <= least) return 1;
  const float share = (depth - least) / (most - least);
  return kind == Depth::metres ? 1 - share : share;
}

/// Dark is far: the colours of matplotlib's "magma" (Smith, van der Walt 2015), of which each ninth is given.
std::array<double, 3> colour_of(double nearness) {
  constexpr std::array<std::array<double, 3>, 9> known{{{0, 0, 4},
                                                        {28, 16, 68},
                                                        {79, 18, 123},
                                                        {129, 37, 129},
                                                        {181, 54, 122},
                                                        {229, 80, 100},
                                                        {251, 135, 97},
                                                        {254, 194, 135},
                                                        {252, 253, 191}}};
  const double place = std::clamp(nearness, 0.0, 1.0) * (known.size() - 1);
  const auto first = std::min(static_cast<std::size_t>(place), known.size() - 2);
  std::array<double, 3> colour{};
  for (std::size_t c = 0; c < 3; ++c)
    colour[c] = std::lerp(known[first][c], known[first + 1][c], place - static_cast<double>(first));
  return colour;
}

Image coloured(const DepthMap& map, Depth kind) {
  Image image{3, map.height, map.width, Bytes(3 * map.depths.size())};
  const auto range = map.range();
  for (std::size_t i = 0; i < map.depths.size(); ++i) {
    const std::array<double, 3> colour = colour_of(nearness(map.depths[i], range, kind));
    for (std::size_t c = 0; c < 3; ++c)
      image.pixels[c * map.depths.size() + i] = static_cast<std::uint8_t>(std::lround(colour[c]));
  }
  return image;
}

}  // namespace

void depths(const Model& model, const Inference& inference, const Preprocessing& input, const PictureList& pictures,
            const DepthSeen& each) {
  const std::int64_t height = model.image_shape[1], width = model.image_shape[2];
  const Arena values = Arena::of_floats(size_product({model.image_shape[0], height, width}), model.alignment);
  const Arena outputs = Arena::of_floats(size_product({height, width}), model.alignment);
  Counter counter("telling depths", pictures.size());
  for (std::int64_t i = 0; i < pictures.size(); ++i) {
    Image picture = pictures.read(i);
    Image read = prepared(picture, input, height, width);
    normalize(read, input, values.floats());
    inference.forward(values.floats(), 1, outputs.floats());
    DepthMap map{height, width, {outputs.floats(), outputs.floats() + height * width}};
    if (covers_pictures(input))
      map = scaled(map, picture.height, picture.width);
    else
      picture = std::move(read);
    each(i, picture, map);
    counter.add(1);
  }
}

Bytes depth_png(const DepthMap& map, Depth kind) {
  Bytes grey(map.depths.size());
  const auto range = map.range();
  std::ranges::transform(map.depths, grey.begin(), [&](float depth) {
    return static_cast<std::uint8_t>(std::lround(255 * nearness(depth, range, kind)));
  });
  return encode_png(grey, 1, map.height, map.width);
}

std::string depth_svg(const Image& picture, const DepthMap& map, Depth kind, const std::string& title) {
  constexpr double margin = 24, head = 56, foot = 62, gap = 12, scale = 240, side = 420;
  const bool below = map.width > map.height;  // a phone shows two wide pictures side by side too small
  const double shrink = std::min(1.0, side / static_cast<double>(std::max(map.height, map.width)));
  const double height = shrink * static_cast<double>(map.height), width = shrink * static_cast<double>(map.width);
  const double room = std::max(below ? width : 2 * width + gap, scale), high = below ? 2 * height + gap : height;
  std::string out = svg_begin(2 * margin + room, head + high + foot);
  out += svg_text(margin, 34, beginning(title, room / 17 / bold_ems), "font-size=\"17\" font-weight=\"600\"");
  out +=
      svg_png(margin, head, width, height, encode_png(picture.pixels, picture.channels, picture.height, picture.width));
  const Image colours = coloured(map, kind);
  out += svg_png(below ? margin : margin + width + gap, below ? head + height + gap : head, width, height,
                 encode_png(colours.pixels, 3, colours.height, colours.width));
  const double bottom = head + high + 14;
  constexpr int steps = 48;
  for (int i = 0; i < steps; ++i) {
    const std::array<double, 3> colour = colour_of(1 - static_cast<double>(i) / (steps - 1));
    out += text("<rect x=\"", fixed(margin + scale * i / steps, 1), "\" y=\"", fixed(bottom, 1), "\" width=\"",
                fixed(scale / steps + 0.5, 1), "\" height=\"12\" fill=\"rgb(", std::lround(colour[0]), ",",
                std::lround(colour[1]), ",", std::lround(colour[2]), ")\"/>\n");
  }
  const auto [least, most] = map.range();
  out += svg_text(margin, bottom + 28, kind == Depth::metres ? text(fixed(least, 2), " m") : "near", "");
  out += svg_text(margin + scale, bottom + 28, kind == Depth::metres ? text(fixed(most, 2), " m") : "far",
                  "text-anchor=\"end\"");
  return out + "</svg>\n";
}

void write_depths(const std::filesystem::path& path, const std::vector<std::string>& names,
                  const std::vector<DepthMap>& maps, Depth kind, const std::map<std::string, std::string>& origin) {
  Safetensors file;
  file.metadata = origin;
  file.metadata["format"] = depths_format;
  file.metadata["unit"] = kind == Depth::metres ? "m" : "inverse depth";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!can_hold(names[i]))
      fail("the name of ", printable(names[i]), " is not UTF-8: ", path.string(), " cannot hold it");
    if (!file.tensors.emplace(names[i], Tensor::of({maps[i].height, maps[i].width}, std::span(maps[i].depths))).second)
      fail(printable(names[i]), " is there twice: ", path.string(), " has a tensor for each picture, by its name");
  }
  write_safetensors(path, file);
}

}  // namespace tessera::runtime
