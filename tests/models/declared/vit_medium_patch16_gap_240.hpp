// timm's vit_medium_patch16_gap_240, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct VitMediumPatch16Gap240 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 11821,
    .class_token = false,
    .qkv_bias = false,
    .layer_scale = 1e-06,
    .pooling = Pooling::mean}> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0.5, .deviation = 0.5, .crop = 0.95}};
};

}  // namespace tessera::models
