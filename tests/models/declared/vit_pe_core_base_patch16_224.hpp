// timm's vit_pe_core_base_patch16_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using VitPeCoreBasePatch16224Block = VitBlock<V, Attention<V, FusedQkv<V>, Rotary<V, Rope{.columns_first = true, .offset = 1, .rows = 14, .columns = 14}>>>;

struct VitPeCoreBasePatch16224 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 1024,
    .stem = Stem::norm_of_all,
    .pooling = Pooling::attention_to_all,
    .pooling_heads = 8,
    .epsilon = 1e-05}, VitPeCoreBasePatch16224Block> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = 0.5, .deviation = 0.5, .crop = 1}};
};

}  // namespace tessera::models
