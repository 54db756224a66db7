// timm's vit_base_patch16_224_miil, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct VitBasePatch16224Miil : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 11221,
    .qkv_bias = false}> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0, .deviation = 1, .crop = 0.875, .interpolation = Interpolation::bilinear}};
};

}  // namespace tessera::models
