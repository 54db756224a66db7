// timm's beit_base_patch16_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/beit.hpp"

namespace tessera::models {

template <class V>
using BeitBasePatch16224Block = GammaBlock<V, Attention<V, QvBias<V>, RelativeTable<V>>>;

using BeitBasePatch16224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .positions = Positions::none,
    .layer_scale = 0.1,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, BeitBasePatch16224Block>;

}  // namespace tessera::models
