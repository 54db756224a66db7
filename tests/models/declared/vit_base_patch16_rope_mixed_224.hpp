// timm's vit_base_patch16_rope_mixed_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

struct VitBasePatch16RopeMixed224 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .positions = Positions::none,
    .layer_scale = 1e-05}, RopeMixedBlock> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 0.9}};
};

}  // namespace tessera::models
