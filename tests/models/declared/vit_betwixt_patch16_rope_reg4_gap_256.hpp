// timm's vit_betwixt_patch16_rope_reg4_gap_256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using VitBetwixtPatch16RopeReg4Gap256Block = GammaBlock<V, Attention<V, QvBias<V>, Rotary<V, Rope{.rows = 16, .columns = 16}>>>;

struct VitBetwixtPatch16RopeReg4Gap256 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .class_token = false,
    .registers = 4,
    .positions = Positions::none,
    .layer_scale = 1e-05,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, VitBetwixtPatch16RopeReg4Gap256Block> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = {0.48145466, 0.4578275, 0.40821073}, .deviation = {0.26862954, 0.26130258, 0.27577711}, .crop = 0.95}};
};

}  // namespace tessera::models
