// timm's vit_base_patch16_reg4_gap_256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitBasePatch16Reg4Gap256 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .class_token = false,
    .registers = 4,
    .patch_positions = true,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}>;

}  // namespace tessera::models
