// timm's vit_base_patch16_rope_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using VitBasePatch16Rope224Block = GammaBlock<V, Attention<V, FusedQkv<V>, Rotary<V, Rope{.temperature = 100, .columns_first = true}>>>;

struct VitBasePatch16Rope224 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .positions = Positions::none,
    .layer_scale = 1e-05}, VitBasePatch16Rope224Block> {
  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = {.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 0.9}};
};

}  // namespace tessera::models
