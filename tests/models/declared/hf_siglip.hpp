// A Vision Transformer of Hugging Face's SigLIP, as its checkpoint has it: written by `tessera declare`.
// Images alone: texts, and zero-shot classification by them, are out of scope.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct HfSiglip : Vit<{
    .image = 8,
    .patch = 4,
    .width = 8,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 0,
    .class_token = false,
    .activation = Activation::gelu_tanh,
    .pooling = Pooling::attention}> {
  static constexpr Preprocessing input{.mean = 0.5, .deviation = 0.5, .crop = 1};
};

}  // namespace tessera::models
