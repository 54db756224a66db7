// timm's vit_pe_lang_large_patch14_448, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using VitPeLangLargePatch14448Block = GammaBlock<V, Attention<V, FusedQkv<V>, Rotary<V, Rope{.columns_first = true, .offset = 1, .rows = 32, .columns = 32}>>>;

using VitPeLangLargePatch14448 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .stem = Stem::norm_of_all,
    .layer_scale = 0.1,
    .final_norm = FinalNorm::none,
    .pooling = Pooling::mean,
    .epsilon = 1e-05}, VitPeLangLargePatch14448Block>;

}  // namespace tessera::models
