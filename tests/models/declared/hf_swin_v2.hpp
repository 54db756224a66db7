// A Swin Transformer of Hugging Face's Swin V2, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/swin_v2.hpp"

namespace tessera::models {

using HfSwinV2 = SwinV2<{
    .image = 8,
    .patch = 2,
    .width = 4,
    .heads = {1, 2},
    .depths = {2, 1},
    .windows = {2, 2},
    .mlp = 2,
    .classes = 10,
    .position_mlp = 4,
    .pretrained_windows = {4, 3}}>;

}  // namespace tessera::models
