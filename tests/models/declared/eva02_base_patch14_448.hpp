// timm's eva02_base_patch14_448, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using Eva02BasePatch14448Block = VitBlock<V, Attention<V, SeparateQkv<V>, Rotary<V, Rope{.rows = 16, .columns = 16}>>, SwiGlu<V, typename V::template Norm<V::M>>>;

using Eva02BasePatch14448 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .hidden = 64,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, Eva02BasePatch14448Block>;

}  // namespace tessera::models
