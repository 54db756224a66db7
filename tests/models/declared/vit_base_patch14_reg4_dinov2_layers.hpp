// timm's vit_base_patch14_reg4_dinov2, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitBasePatch14Reg4Dinov2Layers = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 4,
    .mlp = 1,
    .classes = 0,
    .registers = 4,
    .patch_positions = true,
    .layer_scale = 1e-05}>;

}  // namespace tessera::models
