#include "runtime/similar.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/html.hpp"
#include "runtime/image.hpp"
#include "runtime/labels.hpp"
#include "runtime/numbers.hpp"
#include "runtime/svg.hpp"
#include "runtime/vectors.hpp"

namespace tessera::runtime {
namespace {

constexpr double tile_side = 144, tile_margin = 4;
constexpr double name_size = 12;

/// A picture above its name and a line; null: it cannot be read.
std::string tile(const Image* picture, const std::string& name, const std::string& line) {
  std::string out = svg_begin(tile_side + 2 * tile_margin, tile_side + 2 * tile_margin + 38);
  if (picture) {
    const double larger = static_cast<double>(std::max(picture->height, picture->width));
    const auto scaled = [&](std::int64_t length) {
      return std::max<std::int64_t>(1, std::llround(2 * tile_side * static_cast<double>(length) / larger));
    };
    const Image small = fit(*picture, scaled(picture->height), scaled(picture->width));  // twice as fine as it is shown
    const double height = static_cast<double>(small.height) / 2, width = static_cast<double>(small.width) / 2;
    out += svg_png(tile_margin + (tile_side - width) / 2, tile_margin + (tile_side - height) / 2, width, height,
                   encode_png(small.pixels, small.channels, small.height, small.width));
  } else {
    out += text("<rect x=\"", tile_margin, "\" y=\"", tile_margin, "\" width=\"", tile_side, "\" height=\"", tile_side,
                "\" fill=\"none\" stroke=\"#e4e4e4\"/>\n");
    out += svg_text(tile_margin + tile_side / 2, tile_margin + tile_side / 2, "cannot be read",
                    "text-anchor=\"middle\" font-size=\"12\"");
  }
  out += svg_text(tile_margin, tile_side + 2 * tile_margin + 13, ending(name, tile_side / name_size),
                  text("font-size=\"", name_size, "\""));
  out += svg_text(tile_margin, tile_side + 2 * tile_margin + 30, line, "font-weight=\"700\"");
  return out + "</svg>\n";
}

/// The end of a path tells more than its beginning.
std::string file_name(const std::string& name) {
  const std::filesystem::path path = without_controls(name);
  const std::filesystem::path folder = path.parent_path().filename();
  return (folder / path.filename()).string();
}

}  // namespace

std::optional<double> cosine(std::span<const float> a, std::span<const float> b) {
  const double lengths = std::sqrt(dot(a, a)) * std::sqrt(dot(b, b));
  if (!(lengths > 0)) return std::nullopt;
  return std::clamp(dot(a, b) / lengths, -1.0, 1.0);
}

std::vector<Neighbour> neighbours(const Features& features, std::span<const float> query, std::int64_t top) {
  std::vector<Neighbour> found;
  for (std::int64_t i = 0; i < features.size(); ++i)
    if (const std::optional<double> like = cosine(features.row(i), query)) found.push_back({i, *like});
  const auto count = std::min<std::ptrdiff_t>(top, std::ssize(found));
  std::partial_sort(found.begin(), found.begin() + count, found.end(), [](const Neighbour& a, const Neighbour& b) {
    return a.cosine != b.cosine ? a.cosine > b.cosine : a.picture < b.picture;
  });
  found.resize(static_cast<std::size_t>(count));
  return found;
}

std::string neighbour_table(const Features& features, const std::vector<Neighbour>& found) {
  std::string out;
  for (const Neighbour& n : found)
    out += text(padded(fixed(n.cosine, 3), 6), "  ",
                without_controls(features.names[static_cast<std::size_t>(n.picture)]), "\n");
  return out;
}

std::string neighbour_json(const std::string& query, const Features& features, const std::vector<Neighbour>& found) {
  nlohmann::ordered_json all{{"query", query}, {"neighbours", nlohmann::ordered_json::array()}};
  for (const Neighbour& n : found)
    all["neighbours"].push_back(
        {{"picture", features.names[static_cast<std::size_t>(n.picture)]}, {"cosine", n.cosine}});
  return all.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string contact_sheet(const std::string& title, const Image& query, const Features& features,
                          const std::vector<Neighbour>& found, const PictureList& pictures) {
  Tiles asked{"The picture that was asked about", {}};
  asked.pictures.push_back(tile(&query, "", "query"));
  Tiles near{text("The ", found.size(), " most similar of ", grouped(features.size()),
                  ", by the cosine between their features"),
             {}};
  for (const Neighbour& n : found) {
    const std::string name = file_name(features.names[static_cast<std::size_t>(n.picture)]);
    std::optional<Image> picture;
    try {
      picture = pictures.read(n.picture);
    } catch (const Error&) {
      // shown as an empty tile
    }
    near.pictures.push_back(tile(picture ? &*picture : nullptr, name, fixed(n.cosine, 3)));
  }
  Section section{"Neighbours", {}, {}, ""};
  section.tiles = {asked, near};
  return html_report(
      title,
      text("most similar: ",
           found.empty() ? "none" : file_name(features.names[static_cast<std::size_t>(found.front().picture)])),
      {section});
}

}  // namespace tessera::runtime
