// timm's vit_dlittle_patch16_reg1_gap_256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit_diff.hpp"

namespace tessera::models {

using VitDlittlePatch16Reg1Gap256 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .hidden = 134,
    .class_token = false,
    .registers = 1,
    .patch_positions = true,
    .layer_scale = 1e-05,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, DifferentialBlock>;

}  // namespace tessera::models
