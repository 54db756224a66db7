// timm's vit_betwixt_patch16_reg1_gap_256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitBetwixtPatch16Reg1Gap256 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .class_token = false,
    .registers = 1,
    .patch_positions = true,
    .layer_scale = 1e-05,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}>;

}  // namespace tessera::models
