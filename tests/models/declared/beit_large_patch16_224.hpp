// timm's beit_large_patch16_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/beit.hpp"

namespace tessera::models {

template <class V>
using BeitLargePatch16224Block = GammaBlock<V, Attention<V, QvBias<V>, RelativeTable<V>>>;

using BeitLargePatch16224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .positions = Positions::none,
    .layer_scale = 1e-05,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, BeitLargePatch16224Block>;

}  // namespace tessera::models
