// timm's vit_relpos_base_patch16_plus_240, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit_relpos.hpp"

namespace tessera::models {

template <class V>
using VitRelposBasePatch16Plus240Block = VitBlock<V, Attention<V, FusedQkv<V>, RelativeMlpOfBlock<V>>>;

using VitRelposBasePatch16Plus240 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .class_token = false,
    .positions = Positions::none,
    .layer_scale = 1e-06,
    .pooling = Pooling::mean}, VitRelposBasePatch16Plus240Block>;

}  // namespace tessera::models
