// A Vision Transformer of Hugging Face's SigLIP with classes, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct HfSiglipClasses : Vit<{
    .image = 8,
    .patch = 4,
    .width = 8,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 10,
    .class_token = false,
    .activation = Activation::gelu_tanh,
    .pooling = Pooling::mean}> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0.5, .deviation = 0.5, .crop = 1}};
};

}  // namespace tessera::models
