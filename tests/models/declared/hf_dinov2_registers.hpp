// A Vision Transformer of Hugging Face's DINOv2 of transformers 5, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct HfDinov2Registers : Vit<{
    .image = 8,
    .patch = 4,
    .width = 8,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 0,
    .registers = 3,
    .patch_positions = true,
    .layer_scale = 1,
    .activation = Activation::swiglu}> {
  static constexpr Preprocessing input{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 0.875};
};

}  // namespace tessera::models
