// timm's vit_base_patch16_rope_ape_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using VitBasePatch16RopeApe224Block = GammaBlock<V, Attention<V, FusedQkv<V>, Rotary<V, Rope{.temperature = 100, .columns_first = true}>>>;

using VitBasePatch16RopeApe224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .patch_positions = true,
    .layer_scale = 1e-05}, VitBasePatch16RopeApe224Block>;

}  // namespace tessera::models
