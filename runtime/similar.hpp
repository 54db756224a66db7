// Pictures that are like another one, by the angle between their features.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/embed.hpp"
#include "runtime/features.hpp"

namespace tessera::runtime {

struct Neighbour {
  std::int64_t picture;  ///< its number among the features
  double cosine;         ///< of the angle between its features and the query's
};

/// The cosine of the angle between two vectors, from -1 to 1; nothing where one of them is zero and has no direction.
std::optional<double> cosine(std::span<const float> a, std::span<const float> b);

/// The `top` pictures whose features have the largest cosine with the query's, the largest first, of equal ones the one
/// that stands first. Features that are zero are like nothing and left out.
std::vector<Neighbour> neighbours(const Features& features, std::span<const float> query, std::int64_t top);

/// "0.913  cats/a.jpg", a line for each.
std::string neighbour_table(const Features& features, const std::vector<Neighbour>& found);
/// {"query": "a.jpg", "neighbours": [{"picture": "cats/a.jpg", "cosine": 0.913}, ...]}
std::string neighbour_json(const std::string& query, const Features& features, const std::vector<Neighbour>& found);

/// A contact sheet as an HTML page that needs no other file: the query and its neighbours with their cosines, as many
/// side by side as there is room for. `pictures` are those that the features are of; one that can no longer be read is
/// an empty tile.
std::string contact_sheet(const std::string& title, const Image& query, const Features& features,
                          const std::vector<Neighbour>& found, const PictureList& pictures);

}  // namespace tessera::runtime
