// timm's vit_pe_lang_gigantic_patch14_448, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

template <class V>
using VitPeLangGiganticPatch14448Block = GammaBlock<V, Attention<V, FusedQkv<V>, Rotary<V, Rope{.columns_first = true, .rows = 32, .columns = 32}>>>;

struct VitPeLangGiganticPatch14448 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .hidden = 140,
    .class_token = false,
    .stem = Stem::norm_of_all,
    .layer_scale = 0.1,
    .final_norm = FinalNorm::none,
    .pooling = Pooling::mean,
    .epsilon = 1e-05}, VitPeLangGiganticPatch14448Block> {
  static constexpr Preprocessing input{.mean = 0.5, .deviation = 0.5, .crop = 1};
};

}  // namespace tessera::models
