// What a model tells apart within pictures, as DINOv2's authors draw it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/image.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// A colour for each patch, [rows, columns] of the grid; black: background.
struct PatchColours {
  std::vector<std::uint8_t> colours;  ///< [patches, 3]: red, green, blue
};

/// Oquab et al. 2023, "DINOv2", section 7.5 and figure 1: the first principal component of the patches of all pictures
/// together tells foreground from background; of the foreground's patches, the first three components are red, green
/// and blue, each from its least to its largest value. `tokens` are those of each picture, [tokens, width], patches
/// last. Foreground are the patches on that side of the mean which the pictures' borders are less of. Throws an Error
/// for tokens that are no finite numbers, or all alike.
std::vector<PatchColours> patch_colours(const std::vector<std::vector<float>>& tokens, std::int64_t width,
                                        const Grid& grid);

/// Each picture as the model reads it beside its colours, a row each: as a PNG file, or as an SVG with titles.
Bytes components_png(const std::vector<Image>& pictures, const std::vector<PatchColours>& colours, const Grid& grid);
std::string components_svg(const std::vector<Image>& pictures, const std::vector<PatchColours>& colours,
                           const Grid& grid, const std::string& title);

}  // namespace tessera::runtime
