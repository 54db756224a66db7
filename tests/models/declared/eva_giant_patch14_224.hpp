// timm's eva_giant_patch14_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using EvaGiantPatch14224Block = VitBlock<V, Attention<V, QvBias<V>>>;

struct EvaGiantPatch14224 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .hidden = 104,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, EvaGiantPatch14224Block> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = {0.48145466, 0.4578275, 0.40821073}, .deviation = {0.26862954, 0.26130258, 0.27577711}, .crop = 0.9}};
};

}  // namespace tessera::models
