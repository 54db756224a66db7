// timm's deit3_base_patch16_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct Deit3BasePatch16224 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .patch_positions = true,
    .layer_scale = 1e-06}> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 0.9}};
};

}  // namespace tessera::models
