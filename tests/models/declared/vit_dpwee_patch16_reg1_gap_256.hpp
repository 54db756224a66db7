// timm's vit_dpwee_patch16_reg1_gap_256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit_diff.hpp"

namespace tessera::models {

using VitDpweePatch16Reg1Gap256 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .mlp = 5,
    .classes = 10,
    .class_token = false,
    .registers = 1,
    .patch_positions = true,
    .layer_scale = 1e-05,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, DifferentialParallelBlock>;

}  // namespace tessera::models
