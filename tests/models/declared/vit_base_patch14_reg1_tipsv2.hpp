// timm's vit_base_patch14_reg1_tipsv2, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitBasePatch14Reg1Tipsv2 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .registers = 1,
    .patch_positions = true,
    .layer_scale = 1}>;

}  // namespace tessera::models
