// timm's vit_mediumd_patch16_rope_reg1_gap_256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using VitMediumdPatch16RopeReg1Gap256Block = GammaBlock<V, Attention<V, FusedQkv<V>, Rotary<V, Rope{.rows = 16, .columns = 16}>>>;

using VitMediumdPatch16RopeReg1Gap256 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .class_token = false,
    .registers = 1,
    .positions = Positions::none,
    .qkv_bias = false,
    .layer_scale = 1e-05,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, VitMediumdPatch16RopeReg1Gap256Block>;

}  // namespace tessera::models
