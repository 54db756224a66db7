// timm's eva02_base_patch16_clip_224, as its checkpoint has it: written by `tessera declare`.
// Images alone: texts, and zero-shot classification by them, are out of scope.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using Eva02BasePatch16Clip224Block = VitBlock<V, Attention<V, SeparateQkv<V>, Rotary<V, Rope{.rows = 16, .columns = 16}>, NormedProjection<V>>, SwiGlu<V, typename V::template Norm<V::M>>>;

struct Eva02BasePatch16Clip224 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 512,
    .hidden = 64}, Eva02BasePatch16Clip224Block> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = {0.48145466, 0.4578275, 0.40821073}, .deviation = {0.26862954, 0.26130258, 0.27577711}, .crop = 0.9}};
};

}  // namespace tessera::models
