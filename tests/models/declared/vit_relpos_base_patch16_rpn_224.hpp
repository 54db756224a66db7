// timm's vit_relpos_base_patch16_rpn_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit_relpos.hpp"

namespace tessera::models {

template <class V>
using VitRelposBasePatch16Rpn224Block = VitBlock<V, Attention<V, FusedQkv<V>, RelativeMlpOfBlock<V>>>;

using VitRelposBasePatch16Rpn224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .classes = 10,
    .class_token = false,
    .positions = Positions::none,
    .norms = Norms::after,
    .qkv_bias = false,
    .pooling = Pooling::mean}, VitRelposBasePatch16Rpn224Block>;

}  // namespace tessera::models
