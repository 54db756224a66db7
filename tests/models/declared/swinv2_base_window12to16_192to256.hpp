// timm's swinv2_base_window12to16_192to256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/swin_v2.hpp"

namespace tessera::models {

using Swinv2BaseWindow12to16192to256 = SwinV2<{
    .image = {24, 16},
    .patch = 2,
    .width = 8,
    .heads = {2, 2},
    .depths = {4, 2},
    .windows = {4, {6, 4}},
    .mlp = 2,
    .classes = 10,
    .position_mlp = 8,
    .pretrained_windows = {3, 6}}>;

}  // namespace tessera::models
