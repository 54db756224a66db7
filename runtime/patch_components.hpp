// What a model tells apart within pictures, as DINOv2's authors draw it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/image.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// A colour for each patch, [rows, columns] of the grid.
struct PatchColours {
  std::vector<std::uint8_t> colours;  ///< [patches, 3]: red, green, blue
};

/// Oquab et al. 2023, "DINOv2", section 7.5 and figure 1: the first principal component of the patches of all pictures
/// together tells foreground from background; of the foreground's patches, the first three components are red, green
/// and blue, each from its least to its largest value; the background is black. `tokens` are those of each picture,
/// [tokens, width], patches last. Foreground are the patches on that side of the mean which the pictures' borders are
/// less of. Throws an Error for tokens that are no finite numbers, or all alike.
std::vector<PatchColours> patch_colours(const std::vector<std::vector<float>>& tokens, std::int64_t width,
                                        const Grid& grid);

/// A colour for each cluster of the patches of all pictures together (k_means), of most_clusters that the colour-blind
/// tell apart: Okabe, Ito 2008, "Color Universal Design". Throws an Error for tokens that are no finite numbers.
inline constexpr std::int64_t most_clusters = 8;
std::vector<PatchColours> cluster_colours(const std::vector<std::vector<float>>& tokens, std::int64_t width,
                                          const Grid& grid, std::int64_t clusters);

/// What is drawn beside pictures: a colour for each patch of each.
struct PatchDrawing {
  std::string title;
  std::vector<PatchColours> colours;  ///< of each picture
};

/// Each picture as the model reads it beside its drawings, a row each: as a PNG file, or as an SVG with titles.
Bytes components_png(const std::vector<Image>& pictures, const std::vector<PatchDrawing>& drawings, const Grid& grid);
std::string components_svg(const std::vector<Image>& pictures, const std::vector<PatchDrawing>& drawings,
                           const Grid& grid, const std::string& title);

}  // namespace tessera::runtime
