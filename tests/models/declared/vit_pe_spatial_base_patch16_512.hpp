// timm's vit_pe_spatial_base_patch16_512, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using VitPeSpatialBasePatch16512Block = VitBlock<V, Attention<V, FusedQkv<V>, Rotary<V, Rope{.columns_first = true, .offset = 1, .rows = 32, .columns = 32}>>>;

struct VitPeSpatialBasePatch16512 : Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 0,
    .stem = Stem::norm_of_all,
    .final_norm = FinalNorm::none,
    .pooling = Pooling::mean,
    .epsilon = 1e-05}, VitPeSpatialBasePatch16512Block> {
  static constexpr Preprocessing input{.mean = 0.5, .deviation = 0.5, .crop = 1};
};

}  // namespace tessera::models
