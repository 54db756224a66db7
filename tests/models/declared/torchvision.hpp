// A Vision Transformer of torchvision, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct Torchvision : Vit<{
    .image = 16,
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 10}> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 0.875}};
};

}  // namespace tessera::models
