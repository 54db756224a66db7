// A model of depth of Hugging Face's Depth Anything, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/dpt.hpp"

namespace tessera::models {

using HfDepthAnything = Dpt<{
    .image = 12,
    .patch = 4,
    .width = 4,
    .heads = 2,
    .depth = 4,
    .mlp = 2,
    .classes = 0,
    .layer_scale = 1,
    .layers = {0, 1, 2, 3}}, {.maps = {2, 2, 4, 2}, .fusion = 2, .hidden = 3, .farthest = 20}>;

}  // namespace tessera::models
