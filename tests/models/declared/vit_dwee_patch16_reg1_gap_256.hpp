// timm's vit_dwee_patch16_reg1_gap_256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit_diff.hpp"

namespace tessera::models {

struct VitDweePatch16Reg1Gap256 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .mlp = 5,
    .class_token = false,
    .registers = 1,
    .patch_positions = true,
    .layer_scale = 1e-05,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, DifferentialBlock> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0.5, .deviation = 0.5, .crop = 0.95}};
};

}  // namespace tessera::models
