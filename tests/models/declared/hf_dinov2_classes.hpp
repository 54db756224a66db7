// A Vision Transformer of Hugging Face's DINOv2, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct HfDinov2Classes : Vit<{
    .image = 8,
    .patch = 4,
    .width = 8,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 10,
    .registers = 3,
    .patch_positions = true,
    .layer_scale = 1,
    .pooling = Pooling::class_token_and_mean}> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 0.875}};
};

}  // namespace tessera::models
