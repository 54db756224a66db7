// timm's vit_pe_core_gigantic_patch14_448, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using VitPeCoreGiganticPatch14448Block = VitBlock<V, Attention<V, FusedQkv<V>, Rotary<V, Rope{.columns_first = true, .rows = 32, .columns = 32}>>>;

using VitPeCoreGiganticPatch14448 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .hidden = 140,
    .class_token = false,
    .stem = Stem::norm_of_all,
    .pooling = Pooling::attention_to_all,
    .pooling_heads = 8,
    .pooling_hidden = 96,
    .epsilon = 1e-05}, VitPeCoreGiganticPatch14448Block>;

}  // namespace tessera::models
