// A Vision Transformer of Hugging Face's ViT, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct HfVit : Vit<{
    .image = 8,
    .patch = 4,
    .width = 8,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 10,
    .epsilon = 1e-12}> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0.5, .deviation = 0.5, .crop = 1}};
};

}  // namespace tessera::models
