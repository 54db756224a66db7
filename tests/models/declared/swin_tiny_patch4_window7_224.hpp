// timm's swin_tiny_patch4_window7_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/swin.hpp"

namespace tessera::models {

using SwinTinyPatch4Window7224 = Swin<{
    .image = {24, 16},
    .patch = 2,
    .width = 4,
    .heads = {1, 2},
    .depths = {2, 1},
    .windows = {4, {6, 4}},
    .mlp = 2,
    .classes = 10}>;

}  // namespace tessera::models
