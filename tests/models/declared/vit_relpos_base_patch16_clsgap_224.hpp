// timm's vit_relpos_base_patch16_clsgap_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit_relpos.hpp"

namespace tessera::models {

template <class V>
using VitRelposBasePatch16Clsgap224Block = VitBlock<V, Attention<V, FusedQkv<V>, RelativeMlpOfBlock<V>>>;

using VitRelposBasePatch16Clsgap224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .positions = Positions::none,
    .qkv_bias = false,
    .layer_scale = 1e-06,
    .final_norm = FinalNorm::after_pooling,
    .pooling = Pooling::mean}, VitRelposBasePatch16Clsgap224Block>;

}  // namespace tessera::models
