// What models share whose patches stay a map, Swin Transformers and SAM's image encoder: square patches, and a head
// that reads the map's mean.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "declare/findings.hpp"

namespace tessera::declare {

using Sides = std::array<std::int64_t, 2>;  ///< down and across

/// As a field of a spec has them: one number for a square.
std::string printed(const Sides& sides);

/// patch_embed.proj: width, channels and patches. `width` and `patch` are those of the spec where it says nothing.
void find_square_patches(Findings& found, std::int64_t width, std::int64_t patch);

/// head.fc on so many channels, or none, and the activation. `classes` is that of the spec where it says nothing.
void find_head_of_map(Findings& found, std::int64_t channels, std::int64_t classes);

/// Throws a runtime::Error where the configuration pools otherwise.
void demand_mean(const Findings& found);

}  // namespace tessera::declare
