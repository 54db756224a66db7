// timm's vit_so150m2_patch16_reg1_gap_256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

using VitSo150m2Patch16Reg1Gap256 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .hidden = 62,
    .class_token = false,
    .registers = 1,
    .qkv_bias = false,
    .layer_scale = 1e-05,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}>;

}  // namespace tessera::models
