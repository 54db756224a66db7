// A Depth Anything model of Depth Anything, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/depth_anything.hpp"

namespace tessera::models {

using DepthAnythingV2 = DepthAnything<{
    .image = 12,
    .patch = 4,
    .width = 4,
    .heads = 2,
    .depth = 4,
    .mlp = 2,
    .classes = 0,
    .layer_scale = 1,
    .layers = {0, 1, 2, 3}}, {.maps = {2, 2, 4, 2}, .fusion = 2, .hidden = 3}>;

}  // namespace tessera::models
