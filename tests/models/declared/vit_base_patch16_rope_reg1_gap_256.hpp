// timm's vit_base_patch16_rope_reg1_gap_256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using VitBasePatch16RopeReg1Gap256Block = GammaBlock<V, Attention<V, QvBias<V>, Rotary<V, Rope{.rows = 16, .columns = 16}>>>;

struct VitBasePatch16RopeReg1Gap256 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .class_token = false,
    .registers = 1,
    .positions = Positions::none,
    .layer_scale = 1e-05,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, VitBasePatch16RopeReg1Gap256Block> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0.5, .deviation = 0.5, .crop = 0.95}};
};

}  // namespace tessera::models
