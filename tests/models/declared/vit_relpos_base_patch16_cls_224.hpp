// timm's vit_relpos_base_patch16_cls_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit_relpos.hpp"

namespace tessera::models {

template <class V>
using VitRelposBasePatch16Cls224Block = VitBlock<V, Attention<V, FusedQkv<V>, RelativeMlpOfBlock<V>>>;

using VitRelposBasePatch16Cls224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .positions = Positions::none,
    .qkv_bias = false,
    .layer_scale = 1e-06}, VitRelposBasePatch16Cls224Block>;

}  // namespace tessera::models
