// A Vision Transformer of Hugging Face's ViT, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct HfMsn : Vit<{
    .image = 8,
    .patch = 4,
    .width = 8,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 0}> {
  static constexpr Preprocessing input{.mean = 0.5, .deviation = 0.5, .crop = 1};
};

}  // namespace tessera::models
