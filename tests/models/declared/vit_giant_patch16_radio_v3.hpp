// timm's vit_giant_patch16_radio_v3, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitGiantPatch16RadioV3 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .registers = 7,
    .patch_positions = true,
    .final_norm = FinalNorm::none}>;

}  // namespace tessera::models
