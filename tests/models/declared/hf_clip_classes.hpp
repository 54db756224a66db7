// A Vision Transformer of Hugging Face's CLIP with classes, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct HfClipClasses : Vit<{
    .image = 8,
    .patch = 4,
    .width = 8,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 10,
    .stem = Stem::norm_of_all,
    .activation = Activation::quick_gelu,
    .final_norm = FinalNorm::none,
    .pooling = Pooling::mean,
    .epsilon = 1e-05}> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = {0.48145466, 0.4578275, 0.40821073}, .deviation = {0.26862954, 0.26130258, 0.27577711}, .crop = 1}};
};

}  // namespace tessera::models
