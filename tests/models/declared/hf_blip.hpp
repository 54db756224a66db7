// A Vision Transformer of Hugging Face's BLIP, as its checkpoint has it: written by `tessera declare`.
// Images alone: texts, and zero-shot classification by them, are out of scope.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

struct HfBlip : Vit<{
    .image = 8,
    .patch = 4,
    .width = 8,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .classes = 0,
    .epsilon = 1e-05}> {
  static constexpr Preprocessing input{.mean = {0.48145466, 0.4578275, 0.40821073}, .deviation = {0.26862954, 0.26130258, 0.27577711}, .crop = 1};
};

}  // namespace tessera::models
