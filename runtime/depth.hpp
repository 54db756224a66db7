// How far away the pixels of a picture are: what a model of depth tells, scaled to the picture and drawn.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/depth_map.hpp"
#include "runtime/embed.hpp"
#include "runtime/file.hpp"
#include "runtime/image.hpp"
#include "runtime/inference.hpp"
#include "runtime/model.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {

/// What the model tells of each picture, one after the other: `each` is called with its number, the picture, and its
/// depths, as many as the picture has pixels; unless preparing covers_pictures,
/// with what the model read in the picture's place. `inference` has to be for one image. Throws an Error for a picture
/// that cannot be read, and for depths that are no finite numbers.
using DepthSeen = std::function<void(std::int64_t index, const Image& picture, const DepthMap& map)>;
void depths(const Model& model, const Inference& inference, const Preprocessing& input, const PictureList& pictures,
            const DepthSeen& each);

/// Grey, the nearest pixel white and the farthest black: a PNG file. A map of one depth is white.
Bytes depth_png(const DepthMap& map, Depth kind);

/// The picture and its depths side by side, in colours whose meaning stands below them.
std::string depth_svg(const Image& picture, const DepthMap& map, Depth kind, const std::string& title);

/// Writes a tensor F32 [height, width] for each picture, by its name; all or nothing. The metadata have the origin and
/// the "unit": "m", or "inverse depth". Throws an Error for a name that is not UTF-8, or is there twice.
void write_depths(const std::filesystem::path& path, const std::vector<std::string>& names,
                  const std::vector<DepthMap>& maps, Depth kind, const std::map<std::string, std::string>& origin);

}  // namespace tessera::runtime
