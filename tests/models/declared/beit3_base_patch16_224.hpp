// timm's beit3_base_patch16_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit.hpp"

namespace tessera::models {

template <class V>
using Beit3BasePatch16224Block = VitBlock<V, Attention<V, FusedQkv<V>, Unplaced<V>, NormedProjection<V>>, Mlp<V, typename V::template Norm<V::M>>>;

using Beit3BasePatch16224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean,
    .epsilon = 1e-05}, Beit3BasePatch16224Block>;

}  // namespace tessera::models
