// A Vision Transformer of DINOv2, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct Dinov2 : Vit<{
    .image = 16,
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .hidden = 32,
    .layer_scale = 1,
    .activation = Activation::swiglu}> {
  static constexpr Preprocessing input{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 0.875};
};

}  // namespace tessera::models
