// A Vision Transformer of OpenCLIP, as its checkpoint has it: written by `tessera declare`.
// Images alone: texts, and zero-shot classification by them, are out of scope.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct OpenClip : Vit<{
    .image = 16,
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 12,
    .stem = Stem::norm_of_all,
    .activation = Activation::quick_gelu,
    .epsilon = 1e-05}> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = {0.48145466, 0.4578275, 0.40821073}, .deviation = {0.26862954, 0.26130258, 0.27577711}, .crop = 1}};
};

}  // namespace tessera::models
