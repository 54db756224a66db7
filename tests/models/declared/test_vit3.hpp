// timm's test_vit3, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct TestVit3 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .class_token = false,
    .registers = 1,
    .layer_scale = 1e-05,
    .pooling = Pooling::attention_to_all}> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0.5, .deviation = 0.5, .crop = 0.95}};
};

}  // namespace tessera::models
